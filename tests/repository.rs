//! Rules of the repository that no tool checks: links of the documentation name existing files, and only
//! the gate calls the verifier.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Crate borders keep the verifier from the methods. Inside `pais-anonymize`, methods must not call
/// it either: they build tables, and the gate alone decides on them.
#[test]
fn only_the_gate_decides_with_the_verifier() {
    let src = root().join("crates/pais-anonymize/src");
    let deciding = ["verify_model", "check_truthful"];
    let users: Vec<PathBuf> = files(&src, "rs")
        .into_iter()
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            deciding.iter().any(|name| text.contains(name))
        })
        .map(|path| path.strip_prefix(&src).unwrap().to_owned())
        .collect();
    assert_eq!(users, [PathBuf::from("gate.rs")]);
}

#[test]
fn links_name_existing_files() {
    let mut documents = files(&root().join("docs"), "md");
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
    let mut broken = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let file = link.split('#').next().unwrap();
            let outside = ["http://", "https://", "mailto:"];
            if file.is_empty() || outside.iter().any(|scheme| link.starts_with(scheme)) {
                continue;
            }
            if !document.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// The targets of `[text](target)` in a Markdown text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?;
        (!target.contains(char::is_whitespace)).then_some(target)
    })
}
