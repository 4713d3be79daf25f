//! The house rules, read off the source: imports run one way, outside crates stay in the rooms
//! that are made for them, files stay short, and links of the documentation lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod scan {
    include!("architecture/scan.rs");
}

use scan::{identifiers, rooms, without_comments_and_texts};

/// Each room of `src/` with the rooms it may import. A new room has to be placed here.
///
/// `http → jobs → store, engine → privacy, utility → table, taxonomy → domain`
const ROOMS: [(&str, &[&str]); 16] = [
    ("domain", &[]),
    ("taxonomy", &["domain"]),
    ("table", &["taxonomy", "domain"]),
    ("privacy", &["table", "taxonomy", "domain"]),
    ("utility", &["privacy", "table", "taxonomy", "domain"]),
    (
        "engine",
        &["privacy", "utility", "table", "taxonomy", "domain"],
    ),
    // What a run leaves behind is stored as the engine's types.
    ("store", &["engine", "table", "taxonomy", "domain", "clock"]),
    (
        "jobs",
        &[
            "store", "engine", "privacy", "utility", "table", "taxonomy", "domain", "clock",
        ],
    ),
    (
        "http",
        &[
            "jobs", "store", "engine", "privacy", "utility", "table", "taxonomy", "domain", "clock",
        ],
    ),
    // Only its tests hold what it makes against a schema.
    ("sample", &["table", "taxonomy", "domain"]),
    ("clock", &[]),
    ("config", &["domain"]),
    ("telemetry", &["config"]),
    ("postgres", &[]),
    // The lists of modules, and the command line, may name everything.
    ("cli", EVERYTHING),
    ("main", EVERYTHING),
];

const EVERYTHING: &[&str] = &["*"];

/// Rooms that do no input or output and know of no server.
const PURE: [&str; 7] = [
    "domain", "taxonomy", "table", "privacy", "utility", "engine", "sample",
];

/// Outside crates with the rooms that may name them.
const CRATES: [(&str, &[&str]); 4] = [
    ("sqlx", &["store", "postgres"]),
    (
        "tokio",
        &["store", "jobs", "http", "postgres", "clock", "cli", "main"],
    ),
    ("axum", &["http", "cli", "main"]),
    ("clap", &["cli", "main", "domain"]),
];

/// Longest source file, in lines.
const LONGEST: usize = 500;

/// A source file: where it is, its room, and its code.
struct Source {
    path: PathBuf,
    /// The modules it stands in, from the crate's root; `["store", "jobs"]` for store/jobs.rs.
    modules: Vec<String>,
    text: String,
}

impl Source {
    fn room(&self) -> &str {
        &self.modules[0]
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let source = |path: PathBuf| {
        let inside = path.strip_prefix(&src).unwrap().with_extension("");
        let mut modules: Vec<String> = inside
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if modules.last().is_some_and(|last| last == "mod") {
            modules.pop();
        }
        // `lib.rs` declares the rooms and does nothing else.
        (modules != ["lib"]).then(|| Source {
            text: without_comments_and_texts(&fs::read_to_string(&path).unwrap()),
            path,
            modules,
        })
    };
    files(&src, "rs").into_iter().filter_map(source).collect()
}

#[test]
fn every_room_has_its_place() {
    let placed: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for source in sources() {
        let room = source.room();
        assert!(
            placed.contains(room),
            "{}: place the room `{room}` in ROOMS",
            source.path.display()
        );
    }
}

#[test]
fn imports_run_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let room = source.room();
        let may = allowed[room];
        if may == EVERYTHING {
            continue;
        }
        for named in rooms(&source.text, &source.modules) {
            // Macros and such at the root are no rooms.
            let is_room = allowed.contains_key(named.as_str());
            if is_room && named != room && !may.contains(&named.as_str()) {
                wrong.push(format!(
                    "{}: `{room}` may not import `{named}`",
                    source.path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The table above must not hold a circle, whoever edits it.
#[test]
fn the_rule_has_no_circles() {
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    fn reach<'a>(
        allowed: &BTreeMap<&'a str, &'a [&'a str]>,
        room: &'a str,
        seen: &mut BTreeSet<&'a str>,
    ) {
        for &next in allowed.get(room).copied().unwrap_or_default() {
            if seen.insert(next) {
                reach(allowed, next, seen);
            }
        }
    }
    for (room, _) in ROOMS {
        let mut seen = BTreeSet::new();
        reach(&allowed, room, &mut seen);
        assert!(!seen.contains(room), "`{room}` reaches itself");
    }
}

#[test]
fn outside_crates_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for source in sources() {
        let names = identifiers(&source.text);
        for (name, may) in CRATES {
            if names.contains(name) && !may.contains(&source.room()) {
                wrong.push(format!(
                    "{}: `{name}` belongs to {}",
                    source.path.display(),
                    may.join(", ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for (name, may) in &CRATES[..3] {
        for room in PURE {
            assert!(!may.contains(&room), "`{room}` may not know `{name}`");
        }
    }
}

/// The verifier is worth something because it is not the search that it checks: the only place
/// of the engine that names it is the gate.
#[test]
fn search_and_verifier_share_nothing() {
    let mut gates = Vec::new();
    for source in sources() {
        let named = rooms(&source.text, &source.modules);
        match source.room() {
            "privacy" => assert!(
                !named.contains("engine"),
                "{} names the engine",
                source.path.display()
            ),
            "engine" if named.contains("privacy") => gates.push(source.modules.join("/")),
            _ => {}
        }
    }
    assert_eq!(gates, ["engine/groups/release", "engine/release"]);
}

#[test]
fn files_stay_short() {
    let mut long = Vec::new();
    for path in files(&root().join("src"), "rs") {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        if lines > LONGEST {
            long.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(
        long.is_empty(),
        "over {LONGEST} lines, split them:\n{}",
        long.join("\n")
    );
}

/// Links between documents, such as `[methods](docs/methods.md#dr)`, name files that are there.
#[test]
fn links_lead_somewhere() {
    let mut documents = files(&root().join("docs"), "md");
    documents.extend(["README.md", "CHANGELOG.md"].map(|name| root().join(name)));
    let mut broken = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in scan::links(&text) {
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
