//! A quick run of all figures from end to end, and the committed results.

use std::collections::BTreeSet;
use std::fs;

use clap::Parser;

use crate::figures::{self, Extent};
use crate::measured::MeasuredFigure;
use crate::{Request, carry_out, chart, committed, page};

fn quick(out: &std::path::Path, only: &[&str]) -> anyhow::Result<()> {
    carry_out(&Request {
        only: only.iter().map(|id| (*id).to_owned()).collect(),
        redraw: false,
        quick: true,
        out: Some(out.to_owned()),
    })
}

#[test]
fn a_quick_run_writes_values_and_a_picture_of_each_figure() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["kdd09-4b", "kdd09-6", "items14-4", "diversity08-11"];
    quick(folder.path(), &asked).unwrap();
    let is_asked = |id: &str| asked.iter().any(|it| id.starts_with(it));
    for figure in figures::all(Extent::Quick) {
        let file = |ending| folder.path().join(format!("{}.{ending}", figure.id));
        assert_eq!(file("csv").exists(), is_asked(figure.id), "{}", figure.id);
        if !is_asked(figure.id) {
            continue;
        }
        let measured = MeasuredFigure::read_csv(&file("csv"), figure.x).unwrap();
        let names = measured.series.iter().map(|series| series.name.as_str());
        let expected: Vec<&str> = figure.series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.collect::<Vec<_>>(), expected, "{}", figure.id);
        for series in &measured.series {
            let is_share = figure.id.starts_with("kdd09-4b");
            let fits = |y: f64| y.is_finite() && y >= 0.0 && (!is_share || y <= 1.0);
            assert!(series.values().all(fits), "{}", figure.id);
        }
        let svg = fs::read_to_string(file("svg")).unwrap();
        assert_eq!(svg, chart::svg(&figure, &measured));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        let both = figure.series.iter().zip(&measured.series);
        let drawn = both.filter(|(series, _)| series.style.is_some());
        let values: usize = drawn.map(|(_, measured)| measured.values().count()).sum();
        let marks = svg.matches("class=\"mark").count() + svg.matches("class=\"bar").count();
        assert_eq!(
            marks,
            values + figure.series.iter().filter(|it| it.style.is_some()).count(),
            "a mark a value, and the legend"
        );
    }
}

#[test]
fn a_job_that_cannot_be_met_is_a_point_without_value_and_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    quick(folder.path(), &["kdd09-5d"]).unwrap();
    let figures = figures::all(Extent::Quick);
    let figure = figures.iter().find(|it| it.id == "kdd09-5d").unwrap();
    let file = folder.path().join("kdd09-5d.csv");
    let measured = MeasuredFigure::read_csv(&file, figure.x).unwrap();
    let first = &measured.series[0].points[0];
    assert_eq!(
        (first.x, first.y),
        (5.0, None),
        "more than 5 % are divorced"
    );
    assert!(first.note.contains("c"), "{}", first.note);
    let svg = fs::read_to_string(folder.path().join("kdd09-5d.svg")).unwrap();
    assert!(svg.contains("none at 5"));
}

#[test]
fn the_tables_of_the_pages_are_those_of_the_committed_csv_files() {
    let folder = committed();
    let pages = page::pages(&folder).unwrap();
    let mut files: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.retain(|name| !name.ends_with(".md"));
    for figure in figures::all(Extent::Full) {
        let blocks = pages
            .iter()
            .filter_map(|page| page::parts(&page.text, figure.id).ok());
        let blocks: Vec<&str> = blocks.map(|(_, block, _)| block).collect();
        let expected = page::block_of(&folder, &figure).unwrap();
        assert_eq!(blocks, [expected], "{}: run `make experiments`", figure.id);
        let csv = format!("{}.csv", figure.id);
        if files.remove(&csv) {
            let measured = MeasuredFigure::read_csv(&folder.join(csv), figure.x).unwrap();
            let svg = format!("{}.svg", figure.id);
            assert!(files.remove(&svg), "no {svg}: run `make experiments`");
            let drawn = fs::read_to_string(folder.join(svg)).unwrap();
            assert_eq!(drawn, chart::svg(&figure, &measured), "{}", figure.id);
        }
    }
    assert!(files.is_empty(), "of no figure: {files:?}");
}

#[test]
fn a_quick_run_never_overwrites_the_committed_results() {
    let asked = |line: &str| Request::try_parse_from(format!("x {line}").split_whitespace());
    assert!(asked("--quick").is_err());
    assert!(asked("--fast").is_err());
    let request = asked("--quick --out x --only kdd09 --only adult").unwrap();
    assert_eq!(request.only, ["kdd09", "adult"]);
    assert_eq!(request.out.as_deref(), Some(std::path::Path::new("x")));
    assert_eq!(asked("").unwrap().out, None);
}
