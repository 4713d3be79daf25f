//! The assignment of rows against a plain matching, which tries all pairs of rows.

use std::sync::Arc;

use proptest::prelude::*;

use super::plain_matching::plain_matching;
use super::{names, table};
use crate::assignment::assign;
use crate::cover::Cover;
use crate::matching::MatchingSide;
use crate::original::{Original, OriginalColumn, OriginalQuasiIdentifier};
use crate::sets::{OriginalSet, ReleasedSet};
use crate::source_rows::NOWHERE;
use pais_core::cancellation::Cancellation;
use pais_core::definition::DatasetDefinition;
use pais_core::schema::Schema;
use pais_core::table::codes::Codes;
use pais_core::table::{Column, Domain, Form, ReleasedTable, SetColumn};
use pais_core::taxonomy::{Scale, Tree, TreeLimits};

const LIMITS: TreeLimits = TreeLimits {
    leaves: 20,
    depth: 5,
};

/// Items are a to f.
const SCHEMA: &str = r#"{"name": "t", "columns": [
    {"name": "items", "role": "quasi_identifier", "kind": "set", "separator": "|",
     "taxonomy": {"label": "*", "children": [
        {"label": "low", "children": [{"label": "a"}, {"label": "b"}, {"label": "c"}]},
        {"label": "high", "children": [{"label": "d"}, {"label": "e"}, {"label": "f"}]}]}}]}"#;

/// A raw row: a job, an age, a set of items as bits, and an illness.
type Row = (u32, u32, u32, u32);

struct Raw {
    rows: Vec<Row>,
    job: Domain,
    age: Domain,
    codes: [Vec<u32>; 2],
    items: SetColumn,
    illness: Column,
}

fn item_names(bits: u32) -> String {
    let items = ["a", "b", "c", "d", "e", "f"].into_iter().enumerate();
    let items = items.filter(|(item, _)| bits >> item & 1 == 1);
    items.map(|(_, name)| name).collect::<Vec<_>>().join("|")
}

fn illnesses() -> Vec<Box<str>> {
    names(&["cold", "flu"])
}

impl Raw {
    fn new(rows: Vec<Row>) -> Self {
        let job = serde_json::from_str(
            r#"{"label": "*", "children": [
                {"label": "blue", "children": [{"label": "0"}, {"label": "1"}, {"label": "2"}]},
                {"label": "white", "children": [{"label": "3"}, {"label": "4"}]}]}"#,
        );
        let definition: DatasetDefinition = serde_json::from_str(SCHEMA).unwrap();
        let schema = Schema::resolve(&definition, LIMITS, |_| None).unwrap();
        let spec = schema.stored().next().unwrap();
        let cells = Column {
            dictionary: rows.iter().map(|row| item_names(row.2).into()).collect(),
            codes: (0..rows.len() as u32).collect(),
        };
        Self {
            job: Domain::Taxonomy(Arc::new(Tree::new(&job.unwrap(), LIMITS).unwrap())),
            age: Domain::Numeric {
                values: (0..10).map(f64::from).collect(),
                lo: 0.0,
                hi: 9.0,
                missing: true,
                scale: Scale::Number,
                round: None,
                ends: None,
            },
            codes: [
                rows.iter().map(|row| row.0).collect(),
                rows.iter().map(|row| row.1).collect(),
            ],
            items: SetColumn::new(spec, 0, cells),
            illness: Column {
                dictionary: illnesses(),
                codes: rows.iter().map(|row| row.3).collect(),
            },
            rows,
        }
    }

    fn original(&self) -> Original<'_> {
        let column = |index: usize, name, domain| OriginalQuasiIdentifier {
            name,
            domain,
            declared_domain: true,
            codes: Codes::Four((&self.codes[index]).into()),
            minimum_levels: None,
        };
        Original {
            rows: self.rows.len(),
            quasi_identifiers: vec![column(0, "job", &self.job), column(1, "age", &self.age)],
            sets: vec![OriginalSet {
                column: &self.items,
                minimum_levels: None,
            }],
            untouched: vec![OriginalColumn {
                name: "illness",
                cells: &self.illness,
            }],
        }
    }

    /// Whether the cells of a finished row fit a raw row, decided cell by cell.
    fn fits(&self, cells: &[String], raw: usize) -> bool {
        let original = self.original();
        let labels = original.quasi_identifiers.iter().zip(cells);
        let mut covers = labels.map(|(column, label)| {
            let whole = pais_core::taxonomy::Interval::closed(0.0, 9.0);
            let cover = Cover::within(label, column, Some(whole));
            cover.is_some_and(|cover| contains(&cover, column.codes.at(raw), column.domain))
        });
        let set = ReleasedSet::parse(&cells[2], '|', &self.items.tree);
        covers.all(|covers| covers)
            && set.is_true(self.items.of_row(raw), original.sets[0])
            && *cells[3] == *illnesses()[self.rows[raw].3 as usize]
    }
}

/// Whether a label covers a cell with this code.
fn contains(cover: &Cover, code: u32, domain: &Domain) -> bool {
    let value = match domain {
        Domain::Numeric { values, .. } => values.get(code as usize),
        Domain::Taxonomy(_) => None,
    };
    match (cover, value) {
        (Cover::Leaves { first, end }, _) => (*first..*end).contains(&code),
        (Cover::Missing, value) => value.is_none(),
        (Cover::Numbers { interval, .. }, Some(&value)) => interval.contains(value),
        (Cover::Numbers { missing, .. }, None) => *missing,
    }
}

/// The release of groups: each has the labels that cover all of its rows, or wider ones, and the
/// items that all of its rows have, or fewer.
fn groups(rows: &[Row], groups: &[(usize, bool, u32)]) -> Vec<Vec<String>> {
    let mut released = Vec::new();
    let mut rest = rows;
    for &(size, is_wide, hidden) in groups.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (group, others) = rest.split_at(size.min(rest.len()));
        rest = others;
        let jobs: Vec<u32> = group.iter().map(|row| row.0).collect();
        let job = match (jobs.iter().min(), jobs.iter().max()) {
            (Some(least), Some(most)) if least == most && !is_wide => least.to_string(),
            (_, Some(0..=2)) => "blue".to_owned(),
            (Some(3..), _) => "white".to_owned(),
            _ => "*".to_owned(),
        };
        let ages = || group.iter().map(|row| row.1);
        let (least, most) = (ages().min().unwrap_or(0), ages().max().unwrap_or(0));
        let age = match (least, most) {
            (10, _) => "?".to_owned(),
            (_, 10) => "[0,9]".to_owned(),
            _ => format!("[{least},{}]", (most + u32::from(is_wide)).min(9)),
        };
        let common = group.iter().fold(0b11_1111, |common, row| common & row.2);
        let mut items = item_names(common & !hidden);
        if is_wide && group.iter().all(|row| row.2 & 0b111 != 0) {
            items = if items.is_empty() {
                "low".to_owned()
            } else {
                items + "|low"
            };
        }
        for row in group {
            let illness = illnesses()[row.3 as usize].to_string();
            released.push(vec![job.clone(), age.clone(), items.clone(), illness]);
        }
    }
    released
}

/// What was done to a release.
#[derive(Clone, Debug)]
enum Change {
    Nothing,
    Label(usize, u32),
    Illness(usize),
    Items(usize, u32),
    Lost(usize),
    Invented(Row),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Nothing),
        (any::<usize>(), 0..5u32).prop_map(|(row, job)| Change::Label(row, job)),
        any::<usize>().prop_map(Change::Illness),
        (any::<usize>(), 0..64u32).prop_map(|(row, items)| Change::Items(row, items)),
        any::<usize>().prop_map(Change::Lost),
        row().prop_map(Change::Invented),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    (0..5u32, 0..11u32, 0..64u32, 0..2u32)
}

fn apply(change: &Change, released: &mut Vec<Vec<String>>) {
    let rows = released.len();
    match *change {
        Change::Nothing => {}
        Change::Label(row, job) => released[row % rows][0] = job.to_string(),
        Change::Illness(row) => {
            let cell = &mut released[row % rows][3];
            let other = usize::from(*illnesses()[0] == **cell);
            *cell = illnesses()[other].to_string();
        }
        Change::Items(row, items) => released[row % rows][2] = item_names(items),
        Change::Lost(row) => {
            released.remove(row % rows);
        }
        Change::Invented((job, age, items, illness)) => released.push(vec![
            job.to_string(),
            format!("[{age},9]"),
            item_names(items),
            illnesses()[illness as usize].to_string(),
        ]),
    }
}

fn released_table(rows: &[Vec<String>]) -> ReleasedTable {
    let rows: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| &**cell).collect())
        .collect();
    let mut table = table(&["job", "age", "items", "illness"], &rows);
    table.columns[2].form = Form::Set { separator: '|' };
    table
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn as_many_rows_are_made_up_and_lost_as_in_a_plain_matching(
        rows in prop::collection::vec(row(), 1..60),
        sizes in prop::collection::vec((1..6usize, any::<bool>(), 0..64u32), 1..8),
        changes in prop::collection::vec(change(), 0..3),
        order in any::<u64>(),
    ) {
        let raw = Raw::new(rows);
        let mut cells = groups(&raw.rows, &sizes);
        for change in &changes {
            apply(change, &mut cells);
            if cells.is_empty() {
                return Ok(());
            }
        }
        // Released rows are in another order than the raw ones.
        let turn = order as usize % cells.len();
        cells.rotate_left(turn);
        let released = released_table(&cells);
        let found = assign(&released, &raw.original(), &Cancellation::new()).unwrap();
        let side = |rows: usize| {
            let mut side = MatchingSide::default();
            for row in 0..rows {
                side.add(vec![row as u32]);
            }
            side
        };
        let fit = |one: &[u32], other: &[u32]| raw.fits(&cells[one[0] as usize], other[0] as usize);
        let most = plain_matching(&side(cells.len()), &side(raw.rows.len()), fit);
        prop_assert_eq!(found.made_up, cells.len() as u64 - most);
        prop_assert_eq!(found.lost, raw.rows.len() as u64 - most);
        if changes.iter().all(|change| matches!(change, Change::Nothing | Change::Lost(_))) {
            prop_assert_eq!(found.made_up, 0);
        }
        let mut taken = vec![false; raw.rows.len()];
        let assigned = cells.iter().zip(&found.source_rows);
        for (cells, &source) in assigned.filter(|(_, row)| **row != NOWHERE) {
            prop_assert!(!std::mem::replace(&mut taken[source as usize], true));
            prop_assert!(raw.fits(cells, source as usize));
        }
        prop_assert_eq!(taken.iter().filter(|taken| **taken).count() as u64, most);
    }
}
