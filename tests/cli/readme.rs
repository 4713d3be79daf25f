//! The commands of the README and of the quickstart, with their printed output.

use crate::document_shell::{DocumentShell, Entry, entries};

const README: &str = include_str!("../../README.md");
const QUICKSTART: &str = include_str!("../../docs/quickstart.md");

/// The text of a section.
fn text_of<'text>(document: &'text str, title: &str) -> &'text str {
    let heading = format!("\n## {title}\n");
    let (_, rest) = document.split_once(&heading).expect("the section");
    rest.split("\n## ").next().unwrap()
}

/// The commands of a section of the quickstart.
fn section(title: &str) -> Vec<Entry> {
    entries(text_of(QUICKSTART, title))
}

#[test]
fn the_quickstart_of_the_readme_leads_from_a_file_to_a_granted_table() {
    let mut shell = DocumentShell::new();
    // What `make run` does, and what the text says of the variables.
    for command in [
        "pais serve &",
        "API=http://127.0.0.1:8080/v1",
        "HOSPITAL=$(pais token create --organization hospital --role holder)",
        "BTS=$(pais token create --organization bts --role recipient)",
    ] {
        shell.run(command);
    }
    let entries = entries(text_of(README, "Quickstart"));
    assert!(entries.len() >= 11, "{} commands", entries.len());
    for entry in &entries {
        shell.check(entry);
    }
}

#[test]
fn the_section_from_upload_to_release_is_correct() {
    let mut shell = DocumentShell::new();
    let entries = section("From upload to release");
    assert!(entries.len() >= 14, "{} commands", entries.len());
    for entry in &entries {
        shell.check(entry);
    }
    for entry in &section("A wide table, and the trade-off") {
        shell.check(entry);
    }
}

#[test]
fn the_section_on_drafts_is_correct() {
    let mut shell = DocumentShell::new();
    let entries = section("A schema in minutes");
    assert_eq!(entries.len(), 3);
    for entry in &entries {
        shell.check(entry);
    }
}

#[test]
fn the_section_on_files_is_correct() {
    let heading = "On files, without a server";
    let mut shell = DocumentShell::new();
    for entry in &section(heading) {
        shell.check(entry);
    }
    let steps = std::fs::read(shell.folder.path().join("steps.json")).unwrap();
    let steps: serde_json::Value = serde_json::from_slice(&steps).unwrap();
    let rows = text_of(QUICKSTART, heading)
        .lines()
        .filter(|line| line.starts_with("| "));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .skip_while(|row: &Vec<&str>| row[0] != "0")
        .collect();
    let items = steps["items"].as_array().unwrap();
    assert_eq!(rows.len(), items.len());
    for (row, item) in rows.iter().zip(items) {
        let text = |key: &str| item[key].as_str().unwrap_or("").to_owned();
        let number = |key: &str| match item[key].as_f64() {
            Some(value) if value.fract() == 0.0 => value.to_string(),
            Some(value) => format!("{value:.3}"),
            None => String::new(),
        };
        let children: Vec<&str> = item["children"]
            .as_array()
            .unwrap()
            .iter()
            .map(|child| child.as_str().unwrap())
            .collect();
        let found = [
            number("step"),
            text("attribute"),
            text("value"),
            children.join(", "),
            number("score"),
            number("groups"),
            number("dr"),
        ];
        assert_eq!(*row, found, "{item}");
    }
}
