//! The commands of the README, with their printed output.

use crate::document_shell::{DocumentShell, Entry, entries};

const README: &str = include_str!("../../README.md");

/// The commands of a section.
fn section(title: &str) -> Vec<Entry> {
    let heading = format!("\n## {title}\n");
    let (_, rest) = README.split_once(&heading).expect("the section");
    entries(rest.split("\n## ").next().unwrap())
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
    let (_, section) = README.split_once(heading).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
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
