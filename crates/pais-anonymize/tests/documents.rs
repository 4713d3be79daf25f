//! What README.md and CONTRIBUTING.md show of the library is what it does.

use std::fs;
use std::path::PathBuf;

#[path = "../examples/anonymize.rs"]
#[allow(dead_code, reason = "its `main` is for the example")]
mod example;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first code block after a marker, without its fences.
fn block<'a>(text: &'a str, marker: &str) -> &'a str {
    let rest = text
        .split(marker)
        .nth(1)
        .expect("the marker is in the document");
    let body = rest
        .split("```")
        .nth(1)
        .expect("a code block follows the marker");
    body.split_once('\n').expect("a fence has a language").1
}

#[test]
fn the_readme_shows_the_output_of_the_example() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let shown = block(&readme, "<!-- library-example -->");
    let (command, output) = shown.split_once('\n').unwrap();
    assert_eq!(
        command,
        "$ cargo run -q -p pais-anonymize --example anonymize"
    );
    let mut printed = Vec::new();
    let table_1 = fs::File::open(root().join("tests/data/kdd09/table1.csv")).unwrap();
    example::run(table_1, &mut printed).unwrap();
    assert_eq!(String::from_utf8(printed).unwrap(), output);
}

/// The toy method is compiled and tested with the crate, so its listing is too.
#[test]
fn the_guide_lists_the_toy_method_as_it_is_tested() {
    let guide = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let toy =
        fs::read_to_string(root().join("crates/pais-anonymize/src/methods/toy/mod.rs")).unwrap();
    assert_eq!(block(&guide, "<!-- toy-method -->"), toy);
}
