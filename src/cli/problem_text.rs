//! A problem as a few lines for a person.

use std::fmt::Write;

use pais::problem::Problem;
use pais_core::rejection::Place;

/// Most faults that are printed.
const FAULTS: usize = 10;

/// The lines of a problem: what happened, where, and what would fix it.
pub(crate) fn lines(problem: &Problem) -> String {
    let mut text = format!("pais: {}", problem.detail);
    for fault in problem.errors.iter().take(FAULTS) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {}", place(&fault.place));
        if !problem.detail.ends_with(&fault.detail) {
            let _ = write!(text, ": {}", fault.detail);
        }
        if let Some(fix) = &fault.suggested_fix {
            let _ = write!(text, "\n    fix: {fix}");
        }
    }
    if problem.errors.len() > FAULTS {
        let _ = write!(
            text,
            "\n  and {} more places",
            problem.errors.len() - FAULTS
        );
    }
    if !problem.errors_by_column.is_empty() {
        let columns = problem.errors_by_column.iter();
        let columns: Vec<String> = columns
            .map(|(column, faults)| format!("{column} {faults}"))
            .collect();
        let _ = write!(text, "\n  faults by column: {}", columns.join(", "));
    }
    text
}

fn place(place: &Place) -> String {
    match place {
        Place::Pointer(pointer) if pointer.is_empty() => "the whole document".to_owned(),
        Place::Pointer(pointer) => format!("at {pointer}"),
        Place::Record { line } => format!("line {line}"),
        Place::Cell { line, column } => format!("line {line}, column `{column}`"),
        Place::Column { column } => format!("column `{column}`"),
        Place::Whole => "the whole file".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pais::problem::{Code, Problem};
    use pais_core::rejection::Fault;

    use super::{FAULTS, lines};

    fn fault(line: u64, detail: &str) -> Fault {
        Fault::cell(line, "age", detail)
    }

    #[test]
    fn each_fault_has_its_place_and_its_fix() {
        let mut problem = Problem::with(
            Code::InvalidCells,
            "r.csv: 2 cells do not fit",
            vec![
                fault(3, "no number"),
                fault(9, "no number").fix("declare `thousands`"),
            ],
        );
        problem.errors_by_column.insert("age".to_owned(), 2);
        assert_eq!(
            lines(&problem),
            "pais: r.csv: 2 cells do not fit\n  line 3, column `age`: no number\n  \
             line 9, column `age`: no number\n    fix: declare `thousands`\n  \
             faults by column: age 2"
        );
    }

    #[test]
    fn a_sentence_is_not_printed_twice() {
        let problem = Problem::at(Code::InvalidJob, "/privacy/k", "raise `k`");
        assert_eq!(lines(&problem), "pais: raise `k`\n  at /privacy/k");
    }

    #[test]
    fn a_long_list_is_cut() {
        let faults = (0..FAULTS as u64 + 5).map(|line| fault(line, "no number"));
        let problem = Problem::with(Code::InvalidCells, "cells do not fit", faults.collect());
        let text = lines(&problem);
        assert!(text.ends_with("\n  and 5 more places"), "{text}");
        assert_eq!(text.lines().count(), FAULTS + 2);
    }
}
