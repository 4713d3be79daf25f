//! Intervals of numeric columns whose domain is not declared: the outermost one is released, and
//! its ends depend on which rows are.

use super::table;
use crate::assignment::{Assignment, assign};
use crate::{
    CutError, Original, OriginalQuasiIdentifier, TruthError, check_single_cut, check_truthful,
};
use pais_core::cancellation::Cancellation;
use pais_core::table::codes::Codes;
use pais_core::table::{Domain, ReleasedTable};
use proptest::prelude::*;

const MISSING: u32 = 3;

/// Raw ages 10, 40, 90 and a missing one.
struct Ages {
    domain: Domain,
    codes: Vec<u32>,
}

impl Ages {
    fn new(codes: &[u32]) -> Self {
        let values = vec![10.0, 40.0, 90.0];
        Self {
            domain: Domain::Numeric {
                values,
                lo: 10.0,
                hi: 90.0,
                missing: true,
                scale: pais_core::taxonomy::Scale::Number,
                round: None,
                ends: None,
            },
            codes: codes.to_vec(),
        }
    }

    fn original(&self, declared_domain: bool) -> Original<'_> {
        Original {
            rows: self.codes.len(),
            quasi_identifiers: vec![OriginalQuasiIdentifier {
                name: "age",
                domain: &self.domain,
                declared_domain,
                codes: Codes::Four((&self.codes).into()),
                minimum_levels: None,
            }],
            sets: Vec::new(),
            untouched: Vec::new(),
        }
    }
}

fn ages(labels: &[&str]) -> ReleasedTable {
    let rows: Vec<Vec<&str>> = labels.iter().map(|&label| vec![label]).collect();
    table(&["age"], &rows)
}

/// What the check with known source rows finds, and what the comparison without them finds.
fn compared(
    raw: &Original,
    labels: &[&str],
    source_rows: &[u32],
) -> (Result<(), TruthError>, Result<(), CutError>, Counts) {
    let released = ages(labels);
    let suppressed = (raw.rows - source_rows.len()) as u64;
    let cut = check_single_cut(&released.columns[0], &raw.quasi_identifiers[0], source_rows);
    (
        check_truthful(
            &released,
            raw,
            source_rows,
            suppressed,
            &Cancellation::new(),
        ),
        cut,
        counts(&assign(&released, raw, &Cancellation::new()).unwrap()),
    )
}

/// What an assignment says of a table as a whole.
#[derive(Debug, PartialEq)]
struct Counts {
    made_up: u64,
    lost: u64,
    one_cut: bool,
}

fn counts(found: &Assignment) -> Counts {
    Counts {
        made_up: found.made_up,
        lost: found.lost,
        one_cut: found.one_cut,
    }
}

fn nothing_made_up(lost: u64, one_cut: bool) -> Counts {
    Counts {
        made_up: 0,
        lost,
        one_cut,
    }
}

/// Age 90 is suppressed, so no end of an interval may show it: the missing cell is covered by
/// `[10,40]`.
#[test]
fn a_narrowed_outermost_interval_covers_missing_cells() {
    let raw = Ages::new(&[0, 1, MISSING, 2]);
    let labels = ["[10,40]"; 3];
    let found = compared(&raw.original(false), &labels, &[0, 1, 2]);
    assert_eq!(found, (Ok(()), Ok(()), nothing_made_up(1, true)));
    // A declared domain is not secret, and no narrower interval says that a number is missing.
    let (truthful, cut, assignment) = compared(&raw.original(true), &labels, &[0, 1, 2]);
    assert!(matches!(truthful, Err(TruthError::Untrue { row: 2, .. })));
    assert_eq!((cut, assignment.made_up), (Ok(()), 1));
}

#[test]
fn a_rounded_outermost_interval_is_true() {
    let raw = Ages::new(&[0, 1, MISSING, 2]);
    let found = compared(&raw.original(false), &["[0,100]"; 4], &[0, 1, 2, 3]);
    assert_eq!(found, (Ok(()), Ok(()), nothing_made_up(0, true)));
    let (truthful, cut, _) = compared(&raw.original(true), &["[0,100]"; 4], &[0, 1, 2, 3]);
    assert!(truthful.is_err());
    assert!(matches!(cut, Err(CutError::UnknownLabel { .. })));
}

/// A label that no row has is not released: it neither covers a missing cell nor encloses others.
#[test]
fn an_interval_that_another_one_exceeds_covers_no_missing_cell() {
    let raw = Ages::new(&[0, MISSING, 2]);
    for label in ["[10,40]", "[10,90)", "[20,90]"] {
        let labels = [label, label, "[90,100]"];
        let (truthful, _, assignment) = compared(&raw.original(false), &labels, &[0, 1, 2]);
        assert!(truthful.is_err(), "{label}");
        assert!(assignment.made_up > 0, "{label}");
    }
    let mut released = ages(&["[10,90]"; 3]);
    released.columns[0].column.dictionary.push("[0,100]".into());
    assert_eq!(
        check_truthful(
            &released,
            &raw.original(false),
            &[0, 1, 2],
            0,
            &Cancellation::new()
        ),
        Ok(())
    );
    assert_eq!(
        counts(&assign(&released, &raw.original(false), &Cancellation::new()).unwrap()),
        nothing_made_up(0, true)
    );
}

/// The column is specialized to `[10,40)`, `[40,90]` and `?`, and the row below 40 is suppressed: what is left
/// is one interval and `?`, which is still one cut.
#[test]
fn a_part_of_the_outermost_interval_is_no_overlap_with_the_missing_label() {
    let raw = Ages::new(&[0, 1, MISSING, 2]);
    let found = compared(
        &raw.original(false),
        &["[40,90]", "?", "[40,90]"],
        &[1, 2, 3],
    );
    assert_eq!(found, (Ok(()), Ok(()), nothing_made_up(1, true)));
}

/// Of two missing cells one is `?` and one has the interval: true, as with local recoding, and not
/// one cut.
#[test]
fn missing_cells_with_two_labels_overlap() {
    let raw = Ages::new(&[0, 2, MISSING, MISSING]);
    let labels = ["[10,90]", "[10,90]", "?", "[10,90]"];
    let (truthful, cut, assignment) = compared(&raw.original(false), &labels, &[0, 1, 2, 3]);
    assert_eq!((truthful, assignment), (Ok(()), nothing_made_up(0, false)));
    assert!(matches!(cut, Err(CutError::Overlap { .. })));
    // One part of a declared domain can be all that is released of it beside `?`.
    let declared = raw.original(true);
    let source_rows = [0, 1, 2];
    let (_, cut, _) = compared(&declared, &labels[..3], &source_rows);
    assert_eq!(cut, Ok(()));
}

#[test]
fn a_made_up_number_is_found_beside_the_missing_label() {
    let raw = Ages::new(&[0, 2, MISSING]);
    let labels = ["[40,90]", "[40,90]", "?"];
    let (truthful, _, assignment) = compared(&raw.original(false), &labels, &[0, 1, 2]);
    assert!(matches!(truthful, Err(TruthError::Untrue { row: 0, .. })));
    assert_eq!((assignment.made_up, assignment.one_cut), (1, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The comparison without source rows finds no fault where the check with them finds none.
    #[test]
    fn what_is_true_row_by_row_is_true_as_a_whole(
        codes in prop::collection::vec(0u32..=MISSING, 1..7),
        drawn in prop::collection::vec(0usize..7, 7),
        kept in prop::collection::vec(any::<bool>(), 7),
        declared in any::<bool>(),
    ) {
        const LABELS: [&str; 7] =
            ["?", "[10,90]", "[10,40]", "[40,90]", "[10,40)", "90", "[0,100]"];
        let raw = Ages::new(&codes);
        let rows: Vec<u32> = (0..codes.len() as u32).filter(|&row| kept[row as usize]).collect();
        let labels: Vec<&str> = rows.iter().map(|&row| LABELS[drawn[row as usize]]).collect();
        let (truthful, cut, assignment) = compared(&raw.original(declared), &labels, &rows);
        if truthful.is_ok() {
            prop_assert_eq!(assignment.made_up, 0);
            prop_assert_eq!(assignment.lost, (codes.len() - rows.len()) as u64);
            // Which of the raw rows with equal values was left out is not known without source rows.
            prop_assert!(assignment.one_cut || cut.is_err(), "{:?}", labels);
        }
    }
}

#[test]
fn columns_without_missing_cells_need_no_outermost_interval() {
    let domain = Domain::Numeric {
        values: vec![1.0, 2.0],
        lo: 1.0,
        hi: 2.0,
        missing: false,
        scale: pais_core::taxonomy::Scale::Number,
        round: None,
        ends: None,
    };
    let column = OriginalQuasiIdentifier {
        name: "age",
        domain: &domain,
        declared_domain: false,
        codes: Codes::Four((&[0, 1]).into()),
        minimum_levels: None,
    };
    let released = ages(&["[1,2)", "2"]);
    assert_eq!(
        check_single_cut(&released.columns[0], &column, &[0, 1]),
        Ok(())
    );
}
