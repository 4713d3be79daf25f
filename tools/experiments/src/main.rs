//! `make experiments`: repeats the experiments of the three papers, and some of ours, on public and
//! generated data. Writes a CSV and an SVG file for each figure and the tables of
//! `docs/experiments/README.md`.

#![forbid(unsafe_code)]

mod chart;
mod exponential_l;
mod figures;
mod measured;
mod page;
mod plan;
mod run;
mod tables;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::figures::Extent;
use crate::measured::MeasuredFigure;
use crate::plan::Figure;
use crate::run::Runner;

const USAGE: &str = "usage: pais-experiments [--only FIGURE]... [--redraw | --quick] [--out DIR]
  --only FIGURE  only the figures whose id begins so; may be repeated
  --redraw       only the pictures and the page, from the CSV files that are there
  --quick        200 rows and few points, to try it out; needs --out
  --out DIR      where to write; default docs/experiments of the repository";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Request {
    only: Vec<String>,
    extent: Extent,
    /// Measures nothing.
    redraw: bool,
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    match parse(std::env::args().skip(1))? {
        Some(request) => carry_out(&request),
        None => {
            println!("{USAGE}");
            Ok(())
        }
    }
}

/// The folder of the committed results.
fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments")
}

/// `None` where help is asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Option<Request>> {
    let (mut only, mut extent, mut out) = (Vec::new(), Extent::Full, None);
    let mut redraw = false;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only.push(arguments.next().context("--only needs a figure")?),
            "--out" => out = Some(arguments.next().context("--out needs a directory")?.into()),
            "--quick" => extent = Extent::Quick,
            "--redraw" => redraw = true,
            "--help" | "-h" => return Ok(None),
            other => bail!("unknown argument {other}\n{USAGE}"),
        }
    }
    let out = match (out, extent) {
        (Some(out), _) => out,
        (None, Extent::Full) => committed(),
        (None, Extent::Quick) => bail!("--quick would overwrite the results; give --out"),
    };
    Ok(Some(Request {
        only,
        extent,
        redraw,
        out,
    }))
}

fn carry_out(request: &Request) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut figures = figures::all(request.extent);
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
        return redraw(&request.out, &figures);
    }
    fs::create_dir_all(&request.out)?;
    let mut runner = Runner::new()?;
    let mut without_values = Vec::new();
    for figure in &figures {
        let measured = runner.measure(figure)?;
        if !measured.has_values() {
            without_values.push(figure.id);
            continue;
        }
        let file = |ending| request.out.join(format!("{}.{ending}", figure.id));
        measured.write_csv(&file("csv"), figure.x)?;
        fs::write(file("svg"), chart::svg(figure, &measured))?;
    }
    page::update(&request.out, &figures)?;
    page::update_build(&request.out)?;
    eprintln!(
        "{} figures in {:.0} s, in {}",
        figures.len() - without_values.len(),
        began.elapsed().as_secs_f64(),
        request.out.display()
    );
    if !without_values.is_empty() {
        let without = without_values.join(", ");
        eprintln!("left out, no value was measured: {without}; the lines above say why");
    }
    Ok(())
}

/// Draws the pictures of the CSV files that are there, and writes their tables into the page.
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
