//! The pages `docs/experiments/*.md`: their text is written by hand; the program writes the part between two
//! marks for each figure, the picture and its tables.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::measured::{MeasuredFigure, shown};
use crate::plan::Figure;

/// The mark of the line on how the program was built.
const BUILD: &str = "build";

/// A page, and its text.
pub(crate) struct Page {
    path: PathBuf,
    pub(crate) text: String,
}

/// Writes the measurements of these figures into the pages, if the folder has any.
pub(crate) fn update(folder: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    let mut pages = pages(folder)?;
    for figure in figures {
        replace(&mut pages, figure.id, &block_of(folder, figure)?)?;
    }
    write(&pages)
}

/// Writes into the pages how this program was built, if the folder has any.
pub(crate) fn update_build(folder: &Path) -> anyhow::Result<()> {
    let mut pages = pages(folder)?;
    replace(&mut pages, BUILD, &build())?;
    write(&pages)
}

/// The pages of a folder.
pub(crate) fn pages(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "md") {
            let text = fs::read_to_string(&path)?;
            pages.push(Page { path, text });
        }
    }
    Ok(pages)
}

fn write(pages: &[Page]) -> anyhow::Result<()> {
    for page in pages {
        fs::write(&page.path, &page.text)?;
    }
    Ok(())
}

/// Replaces the block of a figure in the page that has it.
fn replace(pages: &mut [Page], id: &str, block: &str) -> anyhow::Result<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let page = pages.iter_mut().find(|page| parts(&page.text, id).is_ok());
    let page = page.with_context(|| format!("no page has a block `{id}`"))?;
    let (before, _, after) = parts(&page.text, id)?;
    page.text = format!("{before}{block}{after}");
    Ok(())
}

/// How the program was built that wrote the page, and on how many threads it ran.
fn build() -> String {
    let threads = rayon::current_num_threads();
    if cfg!(debug_assertions) {
        format!(
            "The seconds on these pages are those of a debug build on {threads} threads; a release build is \
             faster.\n"
        )
    } else {
        format!("The seconds on these pages are those of a release build on {threads} threads.\n")
    }
}

/// What is before the block of a figure, the block without its marks, and what is after it.
pub(crate) fn parts<'a>(text: &'a str, id: &str) -> anyhow::Result<(&'a str, &'a str, &'a str)> {
    let (first, last) = (format!("<!-- {id} -->\n"), format!("<!-- end {id} -->"));
    let begin = text.find(&first).map(|at| at + first.len());
    let begin = begin.with_context(|| format!("the page has no line `{}`", first.trim_end()))?;
    let end = text[begin..].find(&last).map(|at| begin + at);
    let end = end.with_context(|| format!("the page has no line `{last}`"))?;
    Ok((&text[..begin], &text[begin..end], &text[end..]))
}

/// What the page has of a figure whose CSV file is in this folder, or is not.
pub(crate) fn block_of(folder: &Path, figure: &Figure) -> anyhow::Result<String> {
    let file = folder.join(format!("{}.csv", figure.id));
    Ok(if file.exists() {
        block(figure, &MeasuredFigure::read_csv(&file, figure.x)?)
    } else {
        format!("{}: not measured.\n", figure.title)
    })
}

/// The picture of a figure, the table of its values, and the table of the paper's statements.
fn block(figure: &Figure, measured: &MeasuredFigure) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "![{}]({id}.svg)\n\n{}, [CSV]({id}.csv):\n",
        figure.title,
        figure.y.label,
        id = figure.id
    );
    values(figure, measured, &mut out);
    let claims = figure.claims.iter();
    let mut claims = claims
        .filter_map(|claim| Some((claim, (claim.here)(measured)?)))
        .peekable();
    if claims.peek().is_some() {
        out.push_str("\n| | the paper | here |\n|---|---|---|\n");
    }
    for (claim, here) in claims {
        let _ = writeln!(out, "| {} | {} | {here} |", claim.what, claim.paper);
    }
    out
}

/// One line per series, one column per place.
fn values(figure: &Figure, measured: &MeasuredFigure, out: &mut String) {
    let points = measured.series.iter().flat_map(|series| &series.points);
    let mut places: Vec<f64> = points.map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let _ = write!(out, "| {} |", figure.x.label);
    for place in &places {
        let name = figure.x.names.get(*place as usize);
        let name = name.map_or_else(|| shown(*place), |name| (*name).to_owned());
        let _ = write!(out, " {name} |");
    }
    let _ = writeln!(out, "\n|---|{}", "---:|".repeat(places.len()));
    for series in &measured.series {
        let _ = write!(out, "| {} |", series.name);
        for place in &places {
            let value = series.at(*place).map_or_else(|| "-".to_owned(), shown);
            let _ = write!(out, " {value} |");
        }
        out.push('\n');
    }
    let points = measured.series.iter().flat_map(|series| &series.points);
    let mut notes: Vec<&str> = points.map(|point| point.note.as_str()).collect();
    notes.retain(|note| !note.is_empty());
    notes.sort_unstable();
    notes.dedup();
    for note in notes {
        let _ = writeln!(out, "\n`-`: {note}");
    }
}
