//! What recipients see follows from the release and from what is declared: two raw tables with equal
//! releases have equal documents, whatever the suppressed rows, and what labels hide, may be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, Unobserved, VerifiedRelease};
use pais_core::cancellation::Cancellation;
use pais_core::codebook::{Codebook, CodebookOrganization};
use pais_core::definition::{DatasetDefinition, Job, JobDefinition};
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Table};
use pais_io::read;
use pais_measure::for_recipient;
use pais_verify::{ReleaseTables, ReleaseVerification, verify_release};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

/// Tables, each with up to four others of an equal release, in each run; new ones each time, and as many
/// as `PAIS_PAIRS` says.
fn pairs() -> u32 {
    let asked = std::env::var("PAIS_PAIRS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// The columns of a raw table, without the names of persons.
struct Case {
    columns: Value,
    job: Value,
}

impl Case {
    fn definition(&self) -> DatasetDefinition {
        serde_json::from_value(json!({"name": "t", "columns": self.columns})).unwrap()
    }

    fn schema(&self) -> Schema {
        Schema::inline(&self.definition()).unwrap()
    }

    fn job(&self) -> Job {
        let job: JobDefinition = serde_json::from_value(self.job.clone()).unwrap();
        job.parse().unwrap()
    }

    fn file(&self, rows: &[Vec<String>]) -> String {
        let names = self.columns.as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|it| it["name"].as_str().unwrap()).collect();
        let rows = rows.iter().map(|cells| cells.join(","));
        let lines: Vec<String> = [names.join(",")].into_iter().chain(rows).collect();
        lines.join("\n") + "\n"
    }

    fn shown(&self, rows: &[Vec<String>]) -> String {
        format!("{}\n{}\n{}", self.columns, self.job, self.file(rows))
    }

    /// The release of these rows; `None` where there is none.
    fn release(&self, rows: &[Vec<String>]) -> Option<VerifiedRelease> {
        let schema = self.schema();
        let table = load(&schema, &self.file(rows));
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(Arc::new(schema), self.job(), table, &observer);
        let run = run.ok()?;
        let found = run.search(&observer).ok()?;
        let release = run.release(&found, None, &observer);
        Some(release.unwrap_or_else(|error| panic!("{error}\n{}", self.shown(rows))))
    }

    /// What a recipient of a release sees, but for ids and times.
    fn documents(&self, release: &VerifiedRelease) -> String {
        let holder = CodebookOrganization {
            name: "h".to_owned(),
            display_name: None,
        };
        let codebook = Codebook::of_release(
            holder,
            &self.definition(),
            release.schema(),
            release.tables(),
        );
        let document = json!({
            "rows": release.rows,
            "suppressed_rows": release.suppressed_rows,
            "tables": tables(release),
            "cut": release.cut,
            "verification": release.verification(),
            "warnings": release.warnings,
            "codebook": codebook,
            "report": for_recipient(json!(release.report())),
        });
        serde_json::to_string_pretty(&document).unwrap()
    }

    /// What the verifier finds in the release beside the raw rows.
    fn found(&self, rows: &[Vec<String>], release: &VerifiedRelease) -> ReleaseVerification {
        let schema = self.schema();
        let raw = load(&schema, &self.file(rows));
        let tables = ReleaseTables::Generalized(release.tables()[0].clone());
        let found = verify_release(
            &schema,
            &self.job(),
            &tables,
            Some(raw),
            &Cancellation::new(),
        );
        found.unwrap()
    }

    /// The verifier accepts the release beside the raw rows.
    fn verify(&self, rows: &[Vec<String>], release: &VerifiedRelease) {
        let found = self.found(rows, release);
        assert!(
            found.holds(),
            "{:?}\n{}\n{:?}",
            found.raw,
            self.shown(rows),
            lines(&release.tables()[0])
        );
    }
}

fn load(schema: &Schema, file: &str) -> Table {
    read::csv::read_table(schema, file.as_bytes()).unwrap()
}

/// The rows of a table, which are in a random order.
fn lines(table: &ReleasedTable) -> Vec<String> {
    let mut text = Vec::new();
    pais_io::write::csv(table, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn tables(release: &VerifiedRelease) -> Vec<Vec<String>> {
    release.tables().iter().map(lines).collect()
}

fn rows(cells: &[&str]) -> Vec<Vec<String>> {
    let rows = cells.iter();
    let rows = rows.map(|row| row.split(',').map(str::to_owned).collect());
    rows.collect()
}

fn cells(release: &VerifiedRelease, column: &str) -> Vec<String> {
    let table = &release.tables()[0];
    let column = table.columns.iter().find(|it| *it.name == *column).unwrap();
    let text = |row| column.column.text(row).unwrap_or_default().to_owned();
    let mut cells: Vec<String> = (0..table.rows).map(text).collect();
    cells.sort_unstable();
    cells
}

fn recipients_utility(release: &VerifiedRelease) -> Value {
    for_recipient(json!(release.report()))["utility"].take()
}

/// Twelve persons of two sexes with a column that cannot be specialized, and one of a third sex, who
/// is suppressed.
fn with_a_suppressed_person(
    taxonomy: Value,
    kind: &str,
    cell: &str,
    base: &[&str; 6],
) -> Vec<VerifiedRelease> {
    let case = Case {
        columns: json!([
            {"name": "sex", "role": "quasi_identifier"},
            {"name": "x", "role": "quasi_identifier", "kind": kind, "taxonomy": taxonomy},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 6}, "suppression_limit": 0.1}),
    };
    let mut all: Vec<Vec<String>> = Vec::new();
    for sex in ["f", "m"] {
        all.extend(base.iter().map(|&x| vec![sex.to_owned(), x.to_owned()]));
    }
    all.push(vec!["other".to_owned(), cell.to_owned()]);
    let release = case.release(&all).unwrap();
    assert_eq!(release.suppressed_rows, 1, "{cell}");
    case.verify(&all, &release);
    vec![release]
}

/// It ends at the last released number, rounded up, whichever number is suppressed.
#[test]
fn the_outermost_range_does_not_end_at_a_suppressed_number() {
    let ranges = json!({"generate": "ranges", "widths": [20, 40]});
    let base = ["10", "130", "290", "410", "590", "700"];
    for suppressed in ["50", "995", "99500", "-80"] {
        let found = with_a_suppressed_person(ranges.clone(), "numeric", suppressed, &base);
        for release in found {
            assert_eq!(cells(&release, "x"), ["[0,720)"; 12], "{suppressed}");
            assert_eq!(release.cut.unwrap()["x"], ["[0,720)"], "{suppressed}");
        }
    }
}

/// Without widths these followed from the least and the greatest raw number.
#[test]
fn the_widths_of_ranges_do_not_follow_from_one_number() {
    let ranges = json!({"generate": "ranges"});
    let base = ["1", "13", "29", "41", "59", "70"];
    for suppressed in ["50", "995", "99500"] {
        let found = with_a_suppressed_person(ranges.clone(), "numeric", suppressed, &base);
        for release in found {
            assert_eq!(cells(&release, "x"), ["[0,100)"; 12], "{suppressed}");
        }
    }
}

/// A mask was as long as the longest raw value, and of a character that no raw value contains.
#[test]
fn masks_and_marks_do_not_follow_from_a_suppressed_value() {
    let case = |taxonomy: &str| Case {
        columns: json!([
            {"name": "sex", "role": "quasi_identifier"},
            {"name": "x", "role": "quasi_identifier", "taxonomy": {"generate": taxonomy}},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.2}),
    };
    let released = [
        "f,110", "f,111", "f,120", "f,121", "m,210", "m,211", "m,220", "m,221",
    ];
    for (taxonomy, labels) in [
        ("mask_right", ["11*", "12*", "21*", "22*"]),
        ("prefix", ["11*", "12*", "21*", "22*"]),
    ] {
        for suppressed in ["130", "1234567890123", "13*", "1*#\u{2022}*", "11*"] {
            let mut raw = rows(&released);
            raw.push(rows(&[&format!("other,{suppressed}")]).remove(0));
            let case = case(taxonomy);
            let release = case.release(&raw).unwrap();
            assert_eq!(release.suppressed_rows, 1, "{suppressed}");
            let mut found = cells(&release, "x");
            found.dedup();
            assert_eq!(found, labels, "{taxonomy} {suppressed}");
            case.verify(&raw, &release);
        }
    }
}

/// Beside `(rare)`, a value that few released rows have betrayed that suppressed rows have it.
#[test]
fn the_rare_values_of_a_release_are_rare_among_its_rows() {
    let case = Case {
        columns: json!([
            {"name": "sex", "role": "quasi_identifier"},
            {"name": "x", "role": "quasi_identifier", "taxonomy": {"generate": "rare", "below": 3}},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.2}),
    };
    let released = ["f,a", "f,a", "f,a", "f,b", "f,b", "f,c", "f,d"];
    let mut found = Vec::new();
    for suppressed in ["b", "(rare)", "e"] {
        let mut raw = rows(&released);
        raw.push(rows(&[&format!("other,{suppressed}")]).remove(0));
        let release = case.release(&raw).unwrap();
        case.verify(&raw, &release);
        if release.suppressed_rows == 1 {
            found.push((cells(&release, "x"), case.documents(&release)));
        }
    }
    assert!(found.len() > 1, "{}", found.len());
    for other in &found {
        assert_eq!(*other, found[0]);
    }
    let labels: Vec<&str> = found[0].0.iter().map(String::as_str).collect();
    assert_eq!(
        labels,
        ["(rare)", "(rare)", "(rare)", "(rare)", "a", "a", "a"]
    );
}

/// All released values of `x` are rare, since the rows of the others are suppressed. Their label is not the root,
/// which missing cells are below too.
#[test]
fn rare_values_alone_are_released_beside_missing_cells() {
    let case = Case {
        columns: json!([
            {"name": "code", "role": "quasi_identifier", "missing": ["NA"],
                "taxonomy": {"generate": "prefix", "lengths": [3, 1]}},
            {"name": "x", "role": "quasi_identifier", "missing": ["NA"],
                "taxonomy": {"generate": "rare", "below": 3}},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.5}),
    };
    let raw = rows(&[
        "1*,e", "1*,zz", "2514,NA", "2512,NA", "2512,c", "2612,NA", "B,y", "B,a", "2612,c",
        "2512,a", "32,b", "312,a", "2511,NA", "9,d", "32,b", "311,d", "311,a", "2521,a", "2612,a",
    ]);
    let release = case.release(&raw).unwrap();
    case.verify(&raw, &release);
    let labels = cells(&release, "x");
    assert!(labels.iter().any(|label| label == "?"), "{labels:?}");
    assert!(labels.iter().any(|label| label == "(rare)"), "{labels:?}");
}

/// Values that the release shows were in the order of their masks, and these of a character that no hidden
/// value contains: `**12` is before `32`, `••12` behind it.
#[test]
fn the_order_of_shown_values_does_not_tell_of_hidden_masks() {
    let case = Case {
        columns: json!([
            {"name": "p", "role": "quasi_identifier", "taxonomy": {"generate": "mask_left"}},
            {"name": "ill", "role": "sensitive"},
        ]),
        job: json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2}, "output": "generalized"}),
    };
    let released = [
        "2699,flu",
        "311,cold",
        "2612,cold",
        "2612,flu",
        "32,cough",
        "2512,cough",
        "32,cold",
        "2511,cold",
        "2612,cold",
    ];
    let documents = ["311,cold", "1*#\u{2022},cold"].map(|hidden| {
        let raw = rows(&[&released[..], &[hidden]].concat());
        let release = case.release(&raw).unwrap();
        assert_eq!(
            cells(&release, "p").iter().filter(|it| *it == "*").count(),
            5
        );
        case.documents(&release)
    });
    assert_eq!(documents[0], documents[1]);
}

/// A level of a pre-generalization is counted in the hierarchy of all raw rows. The verifier counted it
/// in that of the released ones, which has fewer levels without the long value, and refused the table.
#[test]
fn levels_are_those_of_all_raw_rows_although_the_longest_value_is_suppressed() {
    let case = Case {
        columns: json!([
            {"name": "p", "role": "quasi_identifier", "taxonomy": {"generate": "mask_right"}},
        ]),
        job: json!({
            "privacy": {"model": "k_anonymity", "k": 2},
            "pre_generalization": {"p": {"level": 1, "values": {"2": ["212121"]}}},
            "suppression_limit": 0.2,
        }),
    };
    let raw = rows(&[
        "211", "211", "212", "212", "221", "221", "222", "222", "212121",
    ]);
    let release = case.release(&raw).unwrap();
    let released = ["211", "211", "212", "212", "22*", "22*", "22*", "22*"];
    assert_eq!(cells(&release, "p"), released);
    case.verify(&raw, &release);
    let lower = Case {
        job: json!({
            "privacy": {"model": "k_anonymity", "k": 2},
            "pre_generalization": {"p": {"level": 4}},
            "suppression_limit": 0.2,
        }),
        ..case
    };
    let found = lower.found(&raw, &release);
    assert_eq!(
        found.raw.unwrap().made_up,
        4,
        "the last digit of three is shown"
    );
}

/// Identical tables have the same NCP, so that no hidden root can be solved for. Eight rows have ranges of 10, of
/// the 20 that the release shows; one row is suppressed.
#[test]
fn ncp_does_not_follow_from_the_root_over_a_suppressed_number() {
    let case = Case {
        columns: json!([{"name": "x", "role": "quasi_identifier", "kind": "numeric",
            "taxonomy": {"generate": "ranges", "widths": [10, 20]}}]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 4}, "suppression_limit": 0.2}),
    };
    for suppressed in ["55", "95", "995"] {
        let raw = rows(&["1", "2", "3", "4", "11", "12", "13", "14", suppressed]);
        let release = case.release(&raw).unwrap();
        assert_eq!(release.suppressed_rows, 1, "{suppressed}");
        let utility = recipients_utility(&release);
        let expected = (8.0 * 0.5 + 1.0) / 9.0;
        assert_eq!(utility["ncp"], expected, "{suppressed}");
        assert_eq!(
            utility["information_remain"],
            1.0 - expected,
            "{suppressed}"
        );
        case.verify(&raw, &release);
    }
}

/// The same of prefixes and ages, whose NCP was the share of the raw values below a label: one more
/// suppressed value changed it.
#[test]
fn ncp_of_prefixes_and_ages_does_not_follow_from_suppressed_values() {
    let prefix = json!({"generate": "prefix"});
    let age = json!({"generate": "age", "at": "2026-01-01", "widths": [10]});
    for (kind, taxonomy, released, suppressed) in [
        (
            "categorical",
            prefix,
            ["11", "12", "21", "22"],
            ["31,41", "31,32", "31,31"],
        ),
        (
            "date",
            age,
            ["1990-01-01", "1991-01-01", "1980-01-01", "1981-01-01"],
            [
                "1931-01-01,1941-01-01",
                "1931-01-01,1932-01-01",
                "1931-01-01,1931-01-01",
            ],
        ),
    ] {
        let case = Case {
            columns: json!([
                {"name": "sex", "role": "quasi_identifier"},
                {"name": "x", "role": "quasi_identifier", "kind": kind, "taxonomy": taxonomy},
            ]),
            job: json!({"privacy": {"model": "k_anonymity", "k": 4}, "suppression_limit": 0.2}),
        };
        for suppressed in suppressed {
            let mut raw: Vec<Vec<String>> = Vec::new();
            for _ in 0..2 {
                raw.extend(
                    released
                        .iter()
                        .map(|x| vec!["f".to_owned(), (*x).to_owned()]),
                );
            }
            let others = suppressed.split(',');
            raw.extend(others.map(|x| vec!["other".to_owned(), x.to_owned()]));
            let release = case.release(&raw).unwrap();
            assert_eq!(release.suppressed_rows, 2, "{suppressed}");
            let ncp = recipients_utility(&release)["ncp_by_column"]["x"]
                .as_f64()
                .unwrap();
            let expected = (8.0 * 0.5 + 2.0) / 10.0;
            assert!((ncp - expected).abs() < 1e-12, "{suppressed}: {ncp}");
            case.verify(&raw, &release);
        }
    }
}

/// The masks above values that are shown were as long as the longest value, also a hidden one.
#[test]
fn masks_that_no_row_shows_do_not_tell_how_long_hidden_values_are() {
    let case = Case {
        columns: json!([
            {"name": "q", "role": "quasi_identifier", "taxonomy": {"generate": "mask_right"}},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 2}}),
    };
    let schema = case.schema();
    for hidden in ["2512", "2511*", "26111111"] {
        let table = load(&schema, &case.file(&rows(&["2611", "A2*", hidden])));
        let made = schema.with_made_hierarchies(&table).unwrap();
        let labels = BTreeSet::from(["*", "2611", "A2*"]);
        let shown = json!(made.columns[0].shown_tree(&labels));
        let children = json!([{"label": "2611"}, {"label": "A2*"}]);
        assert_eq!(
            shown,
            json!({"label": "*", "children": children}),
            "{hidden}"
        );
    }
}

/// Releases that are equal have equal documents, and no label goes beyond the released numbers, in whole
/// intervals. Neither the ends of balanced ranges nor the leaves that a label covers show where suppressed rows
/// are.
#[test]
fn balanced_hierarchies_do_not_depend_on_suppressed_rows() {
    let ranges = json!({"generate": "ranges", "widths": [10], "balance": true});
    let order = ["a", "b", "c", "d", "e", "f"];
    let ordered = json!({"generate": "ordered", "order": order, "balance": true});
    for (kind, taxonomy, base, suppressed) in [
        (
            "numeric",
            ranges,
            ["12", "13", "23", "52", "63", "64"],
            ["55", "57", "95", "995", "1", "-35"],
        ),
        (
            "categorical",
            ordered,
            ["a", "a", "b", "d", "e", "e"],
            ["c", "f", "d", "b", "c", "f"],
        ),
    ] {
        let case = Case {
            columns: json!([
                {"name": "sex", "role": "quasi_identifier"},
                {"name": "x", "role": "quasi_identifier", "kind": kind, "taxonomy": taxonomy},
            ]),
            job: json!({"privacy": {"model": "k_anonymity", "k": 3}, "suppression_limit": 0.1}),
        };
        let mut found: BTreeMap<Vec<Vec<String>>, BTreeSet<String>> = BTreeMap::new();
        for suppressed in suppressed {
            let mut raw: Vec<Vec<String>> = Vec::new();
            for sex in ["f", "m"] {
                raw.extend(base.iter().map(|&x| vec![sex.to_owned(), x.to_owned()]));
            }
            raw.push(vec!["other".to_owned(), suppressed.to_owned()]);
            let release = case.release(&raw).unwrap();
            case.verify(&raw, &release);
            if release.suppressed_rows == 0 {
                // The search took a cut that keeps the row.
                continue;
            }
            for label in cells(&release, "x").iter().filter(|_| kind == "numeric") {
                let range = pais_core::taxonomy::Interval::parse(label).unwrap();
                assert!(range.lo >= 10.0 && range.hi <= 70.0, "{label} {suppressed}");
            }
            let documents = case.documents(&release);
            found.entry(tables(&release)).or_default().insert(documents);
        }
        assert!(found.len() < suppressed.len(), "{found:?}");
        for documents in found.values() {
            assert_eq!(documents.len(), 1, "{documents:?}");
        }
    }
}

/// A node whose ends move to the first and the last label is not the outermost one where cells are missing:
/// the verifier rejected the release, in which `*` was also a label for the released missing cells.
#[test]
fn a_balanced_label_over_all_labels_does_not_cover_released_missing_cells() {
    let order = ["a", "b", "c", "d", "e", "f"];
    let case = Case {
        columns: json!([
            {"name": "x", "role": "quasi_identifier", "missing": ["NA"],
             "taxonomy": {"generate": "ordered", "order": order, "balance": true}},
        ]),
        job: json!({"privacy": {"model": "k_anonymity", "k": 3}, "suppression_limit": 0.3}),
    };
    let cells_of_rows = ["b", "d", "b", "NA", "b", "NA", "a", "NA", "c"];
    let raw: Vec<Vec<String>> = cells_of_rows.iter().map(|&x| vec![x.to_owned()]).collect();
    let release = case.release(&raw).unwrap();
    case.verify(&raw, &release);
    let labels = cells(&release, "x");
    let is_root = |label: &String| label == "*";
    assert!(
        labels.iter().all(is_root) || !labels.iter().any(is_root),
        "{labels:?}"
    );
}

/// Random choices of a case.
struct Draws(TestRng);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        (self.0.next_u64() % count as u64) as usize
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) < times
    }
}

/// A quasi-identifier: its definition, what its cells are, and what else they can be.
struct Drawn {
    column: Value,
    cells: &'static [&'static str],
    others: &'static [&'static str],
}

const CODES: [&str; 12] = [
    "2511", "2512", "2513", "2521", "2611", "2612", "311", "312", "32", "A1", "A2", "A2*",
];
const OTHER_CODES: [&str; 11] = [
    "2514",
    "2699",
    "9",
    "25112511251125112511",
    "25*",
    "2511*",
    "3#",
    "**",
    "1*#\u{2022}",
    "B",
    "25**",
];
const NUMBERS: [&str; 12] = [
    "1", "3", "7", "12", "14", "18", "25", "33", "38", "41", "55", "58",
];
const OTHER_NUMBERS: [&str; 9] = ["50", "95", "720", "995", "9950", "-35", "0", "61", "0.5"];
const DAYS: [&str; 12] = [
    "1987-09-03",
    "1987-09-04",
    "1987-10-01",
    "1988-01-01",
    "1988-02-29",
    "1990-05-05",
    "1991-05-05",
    "1995-12-31",
    "1996-01-01",
    "2001-06-06",
    "2003-07-07",
    "2003-07-08",
];
const OTHER_DAYS: [&str; 5] = [
    "1891-01-01",
    "2099-12-31",
    "1987-09-05",
    "1999-09-09",
    "1970-01-01",
];
const GRADES: [&str; 12] = ["a", "a", "a", "b", "b", "b", "c", "c", "d", "e", "e", "f"];
const OTHER_GRADES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const WORDS: [&str; 8] = ["a", "a", "a", "b", "b", "c", "d", "e"];
const OTHER_WORDS: [&str; 7] = ["(rare)", "((rare))", "**", "zz", "a", "b", "e"];
const SETS: [&str; 8] = [
    "2511|2512",
    "2511",
    "2512|2611",
    "2611|2612|2511",
    "311",
    "",
    "311|2511",
    "2612",
];
const OTHER_SETS: [&str; 6] = ["251125112511|2511", "25*", "**|2611", "9|8|7", "", "A*#"];
const FLAT_WORDS: [&str; 6] = ["u", "v", "w", "x", "y", "NA"];

fn quasi_identifier(draws: &mut Draws, name: &str, sets: bool) -> Drawn {
    let made = |kind: &str, taxonomy: Value, cells, others| Drawn {
        column: json!({"name": name, "role": "quasi_identifier", "kind": kind,
            "taxonomy": taxonomy}),
        cells,
        others,
    };
    if sets {
        let made = |taxonomy| made("set", taxonomy, &SETS[..], &OTHER_SETS[..]);
        return match draws.below(4) {
            0 => made(json!({"generate": "prefix"})),
            1 => made(json!({"generate": "mask_right"})),
            2 => made(json!({"generate": "mask_left"})),
            _ => Drawn {
                column: json!({"name": name, "role": "quasi_identifier", "kind": "set"}),
                cells: &SETS,
                others: &OTHER_SETS,
            },
        };
    }
    let of_codes = |taxonomy| made("categorical", taxonomy, &CODES[..], &OTHER_CODES[..]);
    let of_numbers = |taxonomy| made("numeric", taxonomy, &NUMBERS[..], &OTHER_NUMBERS[..]);
    let of_days = |taxonomy| made("date", taxonomy, &DAYS[..], &OTHER_DAYS[..]);
    let grown = |column: Value, cells, others| {
        let mut column = column;
        column["name"] = json!(name);
        column["role"] = json!("quasi_identifier");
        Drawn {
            column,
            cells,
            others,
        }
    };
    match draws.below(18) {
        0 => of_codes(json!({"generate": "prefix"})),
        1 => of_codes(json!({"generate": "prefix", "lengths": [3, 1]})),
        2 => of_codes(json!({"generate": "mask_right"})),
        3 => of_codes(json!({"generate": "mask_left"})),
        4 => of_numbers(json!({"generate": "ranges", "widths": [10, 20]})),
        5 => of_numbers(json!({"generate": "ranges", "start": 5, "widths": [20]})),
        6 => of_numbers(json!({"generate": "ranges"})),
        7 => of_days(json!({"generate": "calendar"})),
        8 => of_days(json!({"generate": "calendar", "levels": ["quarter", "year"]})),
        9 => of_days(json!({"generate": "age", "at": "2026-01-01"})),
        10 => made(
            "categorical",
            json!({"generate": "rare", "below": 3}),
            &WORDS,
            &OTHER_WORDS,
        ),
        11 => grown(json!({"kind": "numeric"}), &NUMBERS, &OTHER_NUMBERS),
        12 => grown(
            json!({"kind": "numeric", "round": 5}),
            &NUMBERS,
            &OTHER_NUMBERS,
        ),
        13 => grown(json!({"kind": "date"}), &DAYS, &OTHER_DAYS),
        14 => made(
            "categorical",
            json!({"generate": "ordered", "order": OTHER_GRADES, "balance": draws.chance(5, 6),
                "fanout": draws.pick(&[2, 3])}),
            &GRADES,
            &OTHER_GRADES,
        ),
        15 => of_numbers(json!({"generate": "ranges", "widths": [10], "balance": true})),
        16 => of_numbers(json!({"generate": "ranges", "start": 5, "widths": [4], "balance": true})),
        _ => grown(json!({}), &FLAT_WORDS, &["z", "zz", "u"]),
    }
}

fn job(draws: &mut Draws, sets: bool) -> Value {
    let k = draws.pick(&[2, 2, 3, 4]);
    let suppression_limit = draws.pick(&[0.1, 0.2, 0.3, 0.5]);
    let searched =
        |privacy: Value| json!({"privacy": privacy, "suppression_limit": suppression_limit});
    if sets {
        return match draws.below(4) {
            0 => json!({"privacy": {"model": "k_m_anonymity", "k": k, "m": 2}}),
            1 => json!({"privacy": {"model": "lkc", "l": 2, "k": k, "c": 1.0}}),
            _ => searched(json!({"model": "k_anonymity", "k": k})),
        };
    }
    let mut job = match draws.below(8) {
        0 => json!({"privacy": {"model": "l_diversity", "k": k, "l": 2}, "output": "generalized"}),
        1 => json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": "local"}),
        2 => searched(json!({"model": "lkc", "l": 2, "k": k, "c": draws.pick(&[0.8, 1.0])})),
        3 => searched(json!({"model": "alpha_k", "alpha": 0.9, "k": k})),
        4 => searched(json!({"model": "confidence_bounding", "c": 0.8})),
        5 => {
            json!({"privacy": {"model": "distinct_l_diversity", "k": k, "l": 2}, "output": "generalized"})
        }
        _ => searched(json!({"model": "k_anonymity", "k": k})),
    };
    if job.get("suppression_limit").is_some() && draws.chance(1, 3) {
        job["utility"] = json!({"objective": draws.pick(&["ncp", "discernibility"])});
    }
    job
}

/// A random case with its rows, and for each column what its cells can be.
fn case(draws: &mut Draws) -> (Case, Vec<Drawn>, Vec<Vec<String>>) {
    let sets = draws.chance(1, 4);
    let mut columns = vec![quasi_identifier(draws, "p", false)];
    if draws.chance(1, 2) {
        columns.push(quasi_identifier(draws, "q", false));
    }
    if sets {
        columns.push(quasi_identifier(draws, "s", true));
    }
    let definitions = columns.iter().map(|it| {
        let mut column = it.column.clone();
        column["missing"] = json!(["NA"]);
        column
    });
    let sensitive = json!({"name": "ill", "role": "sensitive"});
    let definitions: Vec<Value> = definitions.chain([sensitive]).collect();
    let mut job = job(draws, sets);
    // The levels of a balanced hierarchy depend on the rows.
    let taxonomy = columns[0].column.get("taxonomy");
    let is_made = taxonomy.is_some_and(|it| it["balance"] != true);
    if is_made && columns[0].column["kind"] != "numeric" && draws.chance(1, 6) {
        job["pre_generalization"] = json!({"p": {"level": 1}});
    }
    let missing = draws.chance(1, 4);
    let count = 10 + draws.below(20);
    let row = |_| -> Vec<String> {
        let cells = columns.iter().map(|column| {
            let is_missing = missing && column.column["kind"] != "set" && draws.chance(1, 12);
            if is_missing {
                "NA".to_owned()
            } else {
                draws.pick(column.cells).to_owned()
            }
        });
        let mut cells: Vec<String> = cells.collect();
        cells.push(draws.pick(&["flu", "cold", "cough"]).to_owned());
        cells
    };
    let mut rows: Vec<Vec<String>> = (0..count).map(row).collect();
    // One or two rows that are unlike the others.
    for row in rows.iter_mut().take(1 + count / 12) {
        for (cell, column) in row.iter_mut().zip(&columns) {
            *cell = draws.pick(column.others).to_owned();
        }
    }
    (
        Case {
            columns: json!(definitions),
            job,
        },
        columns,
        rows,
    )
}

/// Other rows: other suppressed ones, or another value of any row.
fn changed(
    draws: &mut Draws,
    columns: &[Drawn],
    rows: &[Vec<String>],
    suppressed: &[usize],
) -> Vec<Vec<String>> {
    let mut other = rows.to_vec();
    let any = [draws.below(rows.len())];
    let changed = if suppressed.is_empty() || draws.chance(1, 4) {
        &any[..]
    } else {
        suppressed
    };
    for &row in changed {
        for (cell, column) in other[row].iter_mut().zip(columns) {
            if draws.chance(2, 3) {
                let others = if draws.chance(2, 3) {
                    column.others
                } else {
                    column.cells
                };
                *cell = draws.pick(others).to_owned();
            }
        }
    }
    other
}

/// Labels of a release are those of hierarchies over its own rows: of each column that is not a set,
/// and whose widths are declared.
fn assert_labels_are_of_released_rows(
    case: &Case,
    rows: &[Vec<String>],
    release: &VerifiedRelease,
) {
    let schema = case.schema();
    let released: Vec<Vec<String>> = release
        .source_rows()
        .iter()
        .map(|&row| rows[row as usize].clone())
        .collect();
    let table = load(&schema, &case.file(&released));
    let made = schema.with_made_hierarchies(&table).unwrap();
    for (spec, declared) in made.columns.iter().zip(case.columns.as_array().unwrap()) {
        let taxonomy = &declared["taxonomy"];
        let has_widths = taxonomy["generate"] != "ranges" || taxonomy.get("widths").is_some();
        // Where the nodes of a balanced tree begin is part of the choice of the cut.
        let follows = has_widths && taxonomy["balance"] != true;
        let (Some(tree), true, false) = (spec.tree(), follows, declared["kind"] == "set") else {
            continue;
        };
        for label in cells(release, spec.name()) {
            assert!(
                label == "?" || tree.find(&label).is_some(),
                "{label} {declared} {}",
                case.job
            );
        }
    }
}

#[test]
fn equal_releases_have_equal_documents() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let cases = pairs().div_ceil(threads);
    let config = ProptestConfig {
        cases,
        max_global_rejects: 100 * cases,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut runner = TestRunner::new(config.clone());
                let found = runner.run(&any::<u64>(), releases_of_a_table);
                found.unwrap_or_else(|error| panic!("{error}"));
            });
        }
    });
}

/// A random table with others of an equal release.
fn releases_of_a_table(seed: u64) -> Result<(), TestCaseError> {
    let seeds: Vec<u8> = seed.to_le_bytes().repeat(4);
    let mut draws = Draws(TestRng::from_seed(RngAlgorithm::ChaCha, &seeds));
    let (case, columns, rows) = case(&mut draws);
    let release = case.release(&rows);
    prop_assume!(release.is_some());
    let release = release.unwrap();
    assert_labels_are_of_released_rows(&case, &rows, &release);
    // Who knows the raw rows alone may doubt a label that equals a value.
    if !rows.iter().flatten().any(|cell| cell.contains(['*', '('])) {
        case.verify(&rows, &release);
    }
    let is_released: BTreeMap<u32, ()> =
        release.source_rows().iter().map(|&row| (row, ())).collect();
    let suppressed: Vec<usize> = (0..rows.len())
        .filter(|&row| !is_released.contains_key(&(row as u32)))
        .collect();
    let mut found = false;
    for _ in 0..4 {
        let other_rows = changed(&mut draws, &columns, &rows, &suppressed);
        let Some(other) = case.release(&other_rows) else {
            continue;
        };
        if other_rows == rows
            || tables(&other) != tables(&release)
            || other.suppressed_rows != release.suppressed_rows
        {
            continue;
        }
        found = true;
        prop_assert_eq!(
            case.documents(&release),
            case.documents(&other),
            "{}\n{}",
            case.shown(&rows),
            case.shown(&other_rows)
        );
    }
    prop_assume!(found);
    Ok(())
}
