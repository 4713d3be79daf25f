//! Every kind of page in a real browser: at no width is anything wider than the page, does a text
//! leave its cell, or is a word broken into letters.

mod pages;

use std::io::Write;
use std::process::Command;

const WIDTHS: [u32; 3] = [400, 900, 1400];

/// Names of the browser, in the order in which they are tried.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The frames' documents are checked by the page around them, and the result is its text.
const CHECK: &str = include_str!("overflow.js");

fn escaped(html: &str) -> String {
    html.replace('&', "&amp;").replace('"', "&quot;")
}

/// The faults that the browser finds in a page at each width.
fn faults(name: &str, html: &str) -> String {
    let browser = BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let browser = browser.expect("a browser: scripts/browser.sh installs chromium");
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
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--virtual-time-budget=5000")
        .arg(format!(
            "--user-data-dir={}",
            dir.path().join("profile").display()
        ))
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
