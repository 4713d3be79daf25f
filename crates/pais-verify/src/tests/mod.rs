//! Tests of the verifier: the tables of the paper, comparison with brute force, and tables with
//! one error each.

mod assignment;
mod attacks;
mod brute_force;
mod found_classes;
mod golden;
mod intervals;
mod itemsets;
pub(crate) mod plain_matching;
mod subjects;
mod truthfulness;
mod wide;

use pais_core::cancellation::Cancellation;
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};

use crate::{CountedTable, LkcRequirement, ModelColumns, Verification, VerifyError, lkc};

/// A released table of labels; an empty cell is missing.
pub(crate) fn table(names: &[&str], rows: &[Vec<&str>]) -> ReleasedTable {
    let columns = names.iter().enumerate().map(|(index, name)| {
        let mut column = Column::default();
        for row in rows {
            let known = column
                .dictionary
                .iter()
                .position(|text| &**text == row[index]);
            let code = known.unwrap_or_else(|| {
                column.dictionary.push(row[index].into());
                column.dictionary.len() - 1
            });
            column.codes.push(code as u32);
        }
        ReleasedColumn {
            name: (*name).into(),
            form: Form::Generalized,
            column,
            missing: vec!["".into()],
        }
    });
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns: columns.collect(),
    }
}

/// The columns of a model.
pub(crate) fn columns<'a>(
    quasi_identifiers: &'a [Box<str>],
    sensitive: &'a [Box<str>],
) -> ModelColumns<'a> {
    ModelColumns {
        quasi_identifiers,
        sensitive,
    }
}

/// The verification of a table under LKC-privacy.
pub(crate) fn verify_lkc<'t>(
    table: impl Into<CountedTable<'t>>,
    columns: ModelColumns,
    requirement: &LkcRequirement,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let found = lkc::verify_lkc(table.into(), None, columns, requirement, cancellation);
    found.map(|(found, _)| found)
}

/// The verification of a table under LKC-privacy, with the sensitive columns of the requirement.
pub(crate) fn verified(
    table: &ReleasedTable,
    quasi_identifiers: &[Box<str>],
    requirement: &LkcRequirement,
) -> Result<Verification, VerifyError> {
    let declared = requirement
        .sensitive
        .iter()
        .map(|named| named.column.clone());
    let declared: Vec<Box<str>> = declared.collect();
    let cancellation = Cancellation::new();
    verify_lkc(
        table,
        columns(quasi_identifiers, &declared),
        requirement,
        &cancellation,
    )
}

pub(crate) fn names(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|&name| name.into()).collect()
}

/// Table 1 of the KDD'09 paper.
pub(crate) fn table_1() -> ReleasedTable {
    patients(
        "Janitor M 34 Y Transgender\nDoctor M 58 N Plastic\nMover M 34 Y Transgender\n\
         Lawyer M 24 N Vascular\nMover M 58 N Urology\nJanitor M 44 Y Plastic\n\
         Doctor M 24 N Urology\nLawyer F 58 N Plastic\nDoctor F 44 N Vascular\n\
         Carpenter F 63 Y Vascular\nTechnician F 63 Y Plastic",
    )
}

/// Table 2 of the KDD'09 paper, with intervals in the syntax of a release.
pub(crate) fn table_2() -> ReleasedTable {
    patients(
        "Non-Technical M [30,60) Y Transgender\nProfessional M [30,60) N Plastic\n\
         Non-Technical M [30,60) Y Transgender\nProfessional M [1,30) N Vascular\n\
         Non-Technical M [30,60) N Urology\nNon-Technical M [30,60) Y Plastic\n\
         Professional M [1,30) N Urology\nProfessional F [30,60) N Plastic\n\
         Professional F [30,60) N Vascular\nTechnical F [60,99] Y Vascular\n\
         Technical F [60,99] Y Plastic",
    )
}

fn patients(rows: &str) -> ReleasedTable {
    let rows: Vec<Vec<&str>> = rows
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    table(&["Job", "Sex", "Age", "Class", "Surgery"], &rows)
}
