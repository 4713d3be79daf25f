//! Every kind of page in a real browser: at no width is anything wider than the page, does a text
//! leave its cell, or is a word broken into letters; and on paper it has few pages.

mod pages;

use std::io::Write;
use std::path::Path;
use std::process::Command;

const WIDTHS: [u32; 4] = [400, 420, 900, 1400];

/// Most pages of paper, for fifty columns.
const MOST_PAGES: usize = 6;

/// Names of the browser, in the order in which they are tried.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The frames' documents are checked by the page around them, and the result is its text.
const CHECK: &str = include_str!("overflow.js");

fn escaped(html: &str) -> String {
    html.replace('&', "&amp;").replace('"', "&quot;")
}

/// A browser without a window, with a profile of its own in a directory.
fn browser(dir: &Path) -> Command {
    let found = BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let mut browser = Command::new(found.expect("a browser: scripts/browser.sh installs chromium"));
    browser.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    browser.arg(format!("--user-data-dir={}", dir.join("profile").display()));
    browser
}

/// Number of pages of a printed page.
fn printed_pages(html: &str) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.html");
    std::fs::write(&path, html).unwrap();
    let pdf = dir.path().join("page.pdf");
    let output = browser(dir.path())
        .arg("--no-pdf-header-footer")
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let pdf = std::fs::read(&pdf)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = String::from_utf8_lossy(&pdf);
    text.matches("/Type /Page\n").count()
}

/// The faults that the browser finds in a page at each width.
fn faults(name: &str, html: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let document = escaped(html);
    let frames: String = WIDTHS
        .iter()
        .map(|width| {
            format!(
                "<iframe title=\"{name} at {width}\" width={width} height=900 srcdoc=\"{document}\"></iframe>"
            )
        })
        .collect();
    let path = dir.path().join("page.html");
    let mut file = std::fs::File::create(&path).unwrap();
    write!(
        file,
        "<!DOCTYPE html><body>{frames}<script>{CHECK}</script>"
    )
    .unwrap();
    let output = browser(dir.path())
        .args(["--dump-dom", "--virtual-time-budget=5000"])
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, result) = text
        .split_once("id=\"result\">checked")
        .unwrap_or_else(|| panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    let (faults, _) = result.split_once("</pre>").unwrap();
    faults.trim().to_owned()
}

#[test]
fn nothing_is_cut_off_at_any_width() {
    for (name, page) in pages::all() {
        assert_eq!(faults(name, &page.render()), "", "{name}");
    }
}

#[test]
fn a_page_of_fifty_columns_is_printed_on_few_pages() {
    for (name, page) in pages::all() {
        let pages = printed_pages(&page.render());
        assert!((1..=MOST_PAGES).contains(&pages), "{name}: {pages} pages");
    }
}

#[test]
fn the_check_finds_what_is_cut_off() {
    let wide = "<body><p style='width:600px'>a wide line</p>";
    let found = faults("wide", wide);
    assert!(found.contains("wide at 400: the page is wider"), "{found}");
    assert!(!found.contains("at 900"), "{found}");
    let narrow = "<body><table style='width:20px;table-layout:fixed'><td style='overflow-wrap:anywhere;width:9px'>letters";
    assert!(faults("narrow", narrow).contains("is too narrow"));
    let link = "<body><a href='#nowhere'>on</a>";
    assert!(faults("link", link).contains("leads nowhere"));
}
