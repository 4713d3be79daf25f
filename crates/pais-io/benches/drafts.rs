//! How good drafts are: the roles that are proposed for public tables, beside those that an expert gives
//! (`tests/data/drafts`).
//!
//! Each column is right, over-cautious (it would tell less than the expert lets it tell), unsafe (a role
//! that the expert names as unsafe), or otherwise wrong. `PAIS_DRAFT_WRONG=1` also lists the columns that
//! are not right, and `PAIS_DRAFT_DOUBTS=1` the questions. The program fails where a column is unsafe, or
//! fewer than 85 % are right; `cargo test` runs it too.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use pais_core::definition::{ColumnDefinition, ColumnRole};
use pais_io::draft::{self, Draft, DraftOptions};
use pais_io::read::TextParameters;

/// Tables that were not looked at while the rules were written.
const HELD_BACK: [&str; 4] = ["acs2012", "emergency_stays", "ercp_trial", "nhefs"];

/// The share of right columns below which the program fails.
const LEAST_RIGHT: f64 = 0.85;

/// How a proposal compares with the expert's roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    OverCautious,
    Unsafe,
    OtherwiseWrong,
}

/// What an expert says of a column.
struct Expected {
    column: String,
    /// The role that she gives, and those that are also fine.
    roles: Vec<ColumnRole>,
    not_safe: Vec<ColumnRole>,
    /// The kind, where it matters.
    kind: Option<String>,
}

/// Numbers of columns by verdict.
#[derive(Clone, Copy, Default)]
struct Score {
    columns: usize,
    right: usize,
    over_cautious: usize,
    not_safe: usize,
}

impl Score {
    fn add(&mut self, verdict: Verdict) {
        self.columns += 1;
        match verdict {
            Verdict::Right => self.right += 1,
            Verdict::OverCautious => self.over_cautious += 1,
            Verdict::Unsafe => self.not_safe += 1,
            Verdict::OtherwiseWrong => {}
        }
    }

    fn join(&mut self, other: Self) {
        self.columns += other.columns;
        self.right += other.right;
        self.over_cautious += other.over_cautious;
        self.not_safe += other.not_safe;
    }

    fn right_share(self) -> f64 {
        self.right as f64 / self.columns.max(1) as f64
    }

    fn print(self, name: &str, milliseconds: u128) {
        println!(
            "{name:<22} {:>7} {:>6} {:>14} {:>7} {:>6} {:>7.1} %  {milliseconds:>6} ms",
            self.columns,
            self.right,
            self.over_cautious,
            self.not_safe,
            self.columns - self.right - self.over_cautious - self.not_safe,
            100.0 * self.right_share()
        );
    }
}

fn main() -> ExitCode {
    // A test runner asks for a list of tests, of which there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/drafts");
    println!(
        "{:<22} {:>7} {:>6} {:>14} {:>7} {:>6}",
        "table", "columns", "right", "over-cautious", "unsafe", "other"
    );
    let (mut seen, mut held_back) = (Score::default(), Score::default());
    for (name, path) in tables(&folder) {
        let started = Instant::now();
        let draft = propose(&path);
        let took = started.elapsed().as_millis();
        let score = score(
            &name,
            &draft,
            &expected(&folder.join(format!("{name}.roles.csv"))),
        );
        score.print(&name, took);
        if std::env::var_os("PAIS_DRAFT_DOUBTS").is_some() {
            for doubt in &draft.doubts {
                let also = doubt.also.len();
                println!("  {name}: {} (and {also} others)", doubt.question);
            }
        }
        if HELD_BACK.contains(&name.as_str()) {
            held_back.join(score);
        } else {
            seen.join(score);
        }
    }
    let mut all = seen;
    all.join(held_back);
    seen.print("tables seen", 0);
    held_back.print("tables held back", 0);
    all.print("all", 0);
    if all.columns == 0 || all.not_safe > 0 || all.right_share() < LEAST_RIGHT {
        eprintln!(
            "drafts are not good enough: no column may be unsafe, and {:.0} % must be right",
            100.0 * LEAST_RIGHT
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The tables of a folder with their names, by name.
fn tables(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut tables: Vec<(String, PathBuf)> = paths
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".csv")?.to_owned();
            (!name.contains('.')).then_some((name, path))
        })
        .collect();
    tables.sort();
    tables
}

fn propose(path: &Path) -> Draft {
    let file = File::open(path).unwrap();
    let draft = draft::csv(file, TextParameters::default(), DraftOptions::default());
    draft.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()))
}

fn expected(path: &Path) -> Vec<Expected> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let roles = |field: usize| row[field].split_whitespace().map(role).collect::<Vec<_>>();
        Expected {
            column: row[0].to_owned(),
            roles: [roles(1), roles(2)].concat(),
            not_safe: roles(3),
            kind: (!row[4].is_empty()).then(|| row[4].to_owned()),
        }
    });
    rows.collect()
}

fn role(word: &str) -> ColumnRole {
    serde_json::from_value(word.into()).unwrap()
}

fn score(table: &str, draft: &Draft, expected: &[Expected]) -> Score {
    let mut proposed: HashMap<&str, &ColumnDefinition> = HashMap::new();
    for column in &draft.dataset.columns {
        proposed.insert(&column.name, column);
        for part in column.from.iter().flatten() {
            proposed.insert(part, column);
        }
    }
    let mut score = Score::default();
    for expected in expected {
        let found = proposed[expected.column.as_str()];
        let verdict = verdict(found, expected);
        score.add(verdict);
        if verdict != Verdict::Right && std::env::var_os("PAIS_DRAFT_WRONG").is_some() {
            let reasons = draft.reasons.iter();
            let reasons = reasons.filter(|(column, _)| *column == found.name);
            let reasons: Vec<&str> = reasons.flat_map(|(_, it)| it).map(String::as_str).collect();
            println!(
                "  {table}.{}: {verdict:?}, {} {}, expected {}: {}",
                expected.column,
                found.role.as_str(),
                found.kind.as_str(),
                expected.roles[0].as_str(),
                reasons.join("; ")
            );
        }
    }
    score
}

fn verdict(found: &ColumnDefinition, expected: &Expected) -> Verdict {
    if expected.not_safe.contains(&found.role) {
        return Verdict::Unsafe;
    }
    if expected.roles.contains(&found.role) {
        // What is dropped or hashed has no kind.
        let has_kind = !matches!(found.role, ColumnRole::Identifier | ColumnRole::Subject);
        let kind = expected.kind.as_deref().filter(|_| has_kind);
        return match kind {
            Some(kind) if kind != found.kind.as_str() => Verdict::OtherwiseWrong,
            _ => Verdict::Right,
        };
    }
    if disclosed(found.role) < disclosed(expected.roles[0]) {
        return Verdict::OverCautious;
    }
    Verdict::OtherwiseWrong
}

/// How much a release discloses of a column with this role, as a rank.
fn disclosed(role: ColumnRole) -> u8 {
    match role {
        ColumnRole::Identifier | ColumnRole::Subject => 0,
        ColumnRole::QuasiIdentifier => 1,
        ColumnRole::Sensitive => 2,
        ColumnRole::Class | ColumnRole::Insensitive => 3,
    }
}
