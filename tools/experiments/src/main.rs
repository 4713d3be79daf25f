//! `make experiments`: repeats the experiments of the three papers, and some of ours, on public and
//! generated data. Writes a CSV and an SVG file for each figure and the tables of the pages in
//! `docs/experiments`.

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod exponential_l;
mod figures;
mod measured;
mod months;
mod page;
mod plan;
mod run;
mod tables;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::ensure;
use clap::Parser;

use crate::figures::Extent;
use crate::measured::MeasuredFigure;
use crate::plan::Figure;
use crate::run::Runner;

/// Repeats the experiments of the papers.
#[derive(Debug, PartialEq, clap::Parser)]
struct Request {
    /// Only the figures whose id begins so; may be repeated
    #[arg(long, value_name = "FIGURE")]
    only: Vec<String>,
    /// Only the pictures and the pages, from the CSV files that are there
    #[arg(long, conflicts_with = "quick")]
    redraw: bool,
    /// 200 rows and few points, to try it out; would overwrite the results without --out
    #[arg(long, requires = "out")]
    quick: bool,
    /// Where to write; default docs/experiments of the repository
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    carry_out(&Request::parse())
}

/// The folder of the committed results.
fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments")
}

fn carry_out(request: &Request) -> anyhow::Result<()> {
    let began = Instant::now();
    let out = request.out.clone().unwrap_or_else(committed);
    let extent = if request.quick {
        Extent::Quick
    } else {
        Extent::Full
    };
    let mut figures = figures::all(extent);
    let all: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
    let names = all.join(", ");
    if !request.only.is_empty() {
        figures.retain(|figure| {
            request
                .only
                .iter()
                .any(|it| figure.id.starts_with(it.as_str()))
        });
    }
    ensure!(!figures.is_empty(), "no such figure; there are {names}");

    if request.redraw {
        return redraw(&out, &figures);
    }
    fs::create_dir_all(&out)?;
    let mut runner = Runner::new()?;
    let mut without_values = Vec::new();
    for figure in &figures {
        let measured = runner.measure(figure)?;
        if !measured.has_values() {
            without_values.push(figure.id);
            continue;
        }
        let file = |ending| out.join(format!("{}.{ending}", figure.id));
        measured.write_csv(&file("csv"), figure.x)?;
        fs::write(file("svg"), chart::svg(figure, &measured))?;
    }
    page::update(&out, &figures)?;
    page::update_build(&out)?;
    eprintln!(
        "{} figures in {:.0} s, in {}",
        figures.len() - without_values.len(),
        began.elapsed().as_secs_f64(),
        out.display()
    );
    if !without_values.is_empty() {
        let without = without_values.join(", ");
        eprintln!("left out, no value was measured: {without}; the lines above say why");
    }
    Ok(())
}

/// Draws the pictures of the existing CSV files, and writes their tables into the pages.
fn redraw(folder: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    for figure in figures {
        let file = |ending| folder.join(format!("{}.{ending}", figure.id));
        if file("csv").exists() {
            let measured = MeasuredFigure::read_csv(&file("csv"), figure.x)?;
            fs::write(file("svg"), chart::svg(figure, &measured))?;
        }
    }
    page::update(folder, figures)
}
