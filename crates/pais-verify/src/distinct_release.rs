//! A release as its distinct rows with their numbers, and what is found in it.

use pais_core::cancellation::Cancellation;
use pais_core::model::Lkc;
use pais_core::table::{Column, ReleasedTable};

use crate::adversaries::{self, AdversaryFigures, AdversaryLengths};
use crate::classes::{Classes, Values};
use crate::lkc::verify_lkc;
use crate::{LkcRequirement, ModelColumns, Verification, VerifyError};

/// The distinct combinations of the quasi-identifiers and sensitive values of a release without sets and
/// persons.
#[derive(Clone, Debug)]
pub struct DistinctRelease {
    /// A row for each combination.
    pub table: ReleasedTable,
    /// Rows of each combination; fewer than 2^32 in all.
    pub rows: Vec<u32>,
}

impl DistinctRelease {
    /// As [`crate::group_sizes`].
    ///
    /// # Errors
    /// As [`crate::group_sizes`].
    pub fn group_sizes(
        &self,
        quasi_identifiers: &[Box<str>],
        cancellation: &Cancellation,
    ) -> Result<Vec<u32>, VerifyError> {
        let columns = Values::new_all(&self.table, quasi_identifiers)?;
        Ok(self.classes(&columns, cancellation)?.sizes)
    }

    /// By column, the number of rows that have each code; null is none of them.
    pub fn code_counts(&self) -> Vec<Vec<u64>> {
        let columns = self.table.columns.iter().map(|it| &it.column);
        let of_column = |column: &Column| {
            let mut counts = vec![0; column.dictionary.len()];
            for (&code, &rows) in column.codes.iter().zip(&self.rows) {
                if let Some(count) = counts.get_mut(code as usize) {
                    *count += u64::from(rows);
                }
            }
            counts
        };
        columns.map(of_column).collect()
    }

    fn classes(
        &self,
        columns: &[Values],
        cancellation: &Cancellation,
    ) -> Result<Classes<'_>, VerifyError> {
        let classes = Classes::new(self.table.rows, columns, cancellation)?;
        Ok(classes.counted_by(Some(&self.rows)))
    }

    /// As [`crate::measure_adversaries`].
    ///
    /// # Errors
    /// As [`crate::measure_adversaries`].
    pub fn adversaries(
        &self,
        quasi_identifiers: &[Box<str>],
        requirement: &LkcRequirement,
        lengths: AdversaryLengths,
        cancellation: &Cancellation,
    ) -> Result<AdversaryFigures, VerifyError> {
        let columns = Values::new_all(&self.table, quasi_identifiers)?;
        let classes = self.classes(&columns, cancellation)?;
        let counted = (&self.table).into();
        adversaries::measure(
            counted,
            &columns,
            &classes,
            requirement,
            lengths,
            cancellation,
        )
    }

    /// As [`crate::verify_model`].
    ///
    /// # Errors
    /// As [`crate::verify_model`].
    pub fn verify_model(
        &self,
        columns: ModelColumns,
        model: &Lkc,
        cancellation: &Cancellation,
    ) -> Result<Verification, VerifyError> {
        let known = columns.quasi_identifiers.len();
        let requirement = LkcRequirement::from_model(model, known, columns.sensitive);
        let (table, rows) = (&self.table, Some(&*self.rows));
        let (found, _) = verify_lkc(table.into(), rows, columns, &requirement, cancellation)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use pais_core::cancellation::Cancellation;
    use pais_core::model::{Confidence, Lkc, MissingSensitive};
    use pais_core::table::{NULL_CODE, ReleasedTable};

    use super::DistinctRelease;
    use crate::adversaries::{AdversaryLengths, measure_adversaries};
    use crate::requirement::{SensitiveRequirement, SensitiveSet};
    use crate::tests::{columns, names, table};
    use crate::{EquivalenceClasses, LkcRequirement, group_sizes, verify_model};

    /// Each row as often as it counts.
    fn written_out(release: &DistinctRelease) -> ReleasedTable {
        let mut all = release.table.clone();
        all.rows = release.rows.iter().map(|&rows| rows as usize).sum();
        for column in &mut all.columns {
            let codes = column.column.codes.iter().zip(&release.rows);
            let codes = codes.flat_map(|(&code, &rows)| std::iter::repeat_n(code, rows as usize));
            column.column.codes = codes.collect();
        }
        all
    }

    proptest! {
        #[test]
        fn distinct_rows_have_the_figures_of_all_rows(
            rows in prop::collection::vec(([0..3u32, 0..2, 0..3], 0..4u32, 1..5u32), 1..30),
            l in 1..4u32,
            k in 1..6u64,
        ) {
            let lines = rows.iter().map(|(values, disease, _)| {
                let [a, b, c] = values.map(|value| value.to_string());
                [a, b, c, disease.to_string()]
            });
            let lines: Vec<[String; 4]> = lines.collect();
            let cells: Vec<Vec<&str>> = lines
                .iter()
                .map(|cells| cells.iter().map(String::as_str).collect())
                .collect();
            let mut table = table(&["a", "b", "c", "s"], &cells);
            // A sensitive value that is missing.
            let column = &mut table.columns[3].column;
            let missing = column.dictionary.iter().position(|text| &**text == "3");
            for code in &mut column.codes {
                if Some(*code as usize) == missing {
                    *code = NULL_CODE;
                }
            }
            let release = DistinctRelease {
                table,
                rows: rows.iter().map(|(_, _, rows)| *rows).collect(),
            };
            let all = written_out(&release);
            let (known, sensitive) = (names(&["a", "b", "c"]), names(&["s"]));
            let none = Cancellation::new();
            let sorted = |mut sizes: Vec<u32>| {
                sizes.sort_unstable();
                sizes
            };
            prop_assert_eq!(
                sorted(release.group_sizes(&known, &none).unwrap()),
                sorted(group_sizes(&all, &known, &none).unwrap())
            );
            let of_all = all.columns.iter().map(|it| it.column.row_counts());
            prop_assert_eq!(release.code_counts(), of_all.collect::<Vec<_>>());
            let requirement = LkcRequirement {
                l: l as usize,
                k,
                c: Confidence::UNBOUNDED,
                sensitive: vec![SensitiveRequirement {
                    column: "s".into(),
                    values: SensitiveSet::Every,
                }],
                missing_sensitive: MissingSensitive::Excluded,
            };
            let lengths = AdversaryLengths { assumed: l, longest: 3 };
            let classes = EquivalenceClasses::new(&all, &known, None, &none).unwrap();
            prop_assert_eq!(
                release.adversaries(&known, &requirement, lengths, &none).unwrap(),
                measure_adversaries(&all, &classes, &requirement, lengths, &none).unwrap()
            );
            let model = Lkc::k_anonymity(k).unwrap();
            let found = release.verify_model(columns(&known, &sensitive), &model, &none).unwrap();
            let counted = (&all).into();
            let (expected, _) =
                verify_model(counted, columns(&known, &sensitive), &model.into(), &none).unwrap();
            prop_assert_eq!(found.holds, expected.holds());
            prop_assert_eq!(found.greatest_confidence, expected.greatest_confidence());
            prop_assert_eq!(found.smallest_group, expected.smallest_group());
        }
    }
}
