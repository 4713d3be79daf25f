//! The error of a classifier on a release, together with those on raw rows (KDD'09, Section 5.1).
//!
//! A C4.5 tree learns the class column from two thirds of the rows and is
//! tested on the others.

use serde::{Deserialize, Serialize};

use super::holdout::Thirds;
use crate::utility::rounded;

/// Errors of a C4.5 tree that learnt the class column from two thirds of the rows, on the other
/// third: shares of the tested rows, from 0 to 1, means over several random divisions (KDD'09,
/// Section 5.1).
///
/// `be`, `ue` and the differences are computed from raw rows, so a report has them rounded to two
/// significant digits, and for the holder alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassificationError {
    /// *CE*, the error on the release.
    pub ce: f64,
    /// Standard deviation of `ce` over the divisions; 0 for one.
    pub ce_spread: f64,
    /// *BE*, the baseline error: on the raw rows with the same columns. For the holder alone, with
    /// two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub be: Option<f64>,
    /// *UE*, the upper error: on the raw rows without quasi-identifiers. For the holder alone, with
    /// two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ue: Option<f64>,
    /// *CE - BE*, the cost of anonymization; mean of the differences of the divisions. For the
    /// holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_minus_be: Option<f64>,
    /// *UE - CE*, the benefit of the release over one without quasi-identifiers. For the holder
    /// alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ue_minus_ce: Option<f64>,
    /// Number of divisions.
    pub repeats: u32,
    /// Released rows that a tree learnt from.
    pub trained_rows: u64,
    /// Released rows that it was tested on.
    pub tested_rows: u64,
}

/// The errors of one division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DivisionErrors {
    pub(super) ce: f64,
    /// *BE* and *UE*, where raw figures are wanted.
    pub(super) raw: Option<(f64, f64)>,
}

impl ClassificationError {
    /// The means over divisions, all with or all without raw figures; `None` without any. `rows` are the
    /// released rows of one of them.
    pub(super) fn mean(divisions: &[DivisionErrors], rows: &Thirds) -> Option<Self> {
        let repeats = divisions.len();
        if repeats == 0 {
            return None;
        }
        let mean = |of: &dyn Fn(&DivisionErrors) -> Option<f64>| {
            let sum: Option<f64> = divisions.iter().map(of).sum();
            sum.map(|sum| sum / repeats as f64)
        };
        let ce = mean(&|it| Some(it.ce))?;
        let squares = mean(&|it| Some((it.ce - ce).powi(2)))?;
        let degrees = repeats.saturating_sub(1).max(1) as f64;
        Some(Self {
            ce,
            ce_spread: (squares * repeats as f64 / degrees).sqrt(),
            be: mean(&|it| it.raw.map(|(be, _)| be)),
            ue: mean(&|it| it.raw.map(|(_, ue)| ue)),
            ce_minus_be: mean(&|it| it.raw.map(|(be, _)| it.ce - be)),
            ue_minus_ce: mean(&|it| it.raw.map(|(_, ue)| ue - it.ce)),
            repeats: repeats as u32,
            trained_rows: rows.learning.len() as u64,
            tested_rows: rows.testing.len() as u64,
        })
    }

    /// The errors with what is computed from raw rows to two significant digits.
    pub(super) fn rounded(self) -> Self {
        Self {
            be: self.be.map(rounded),
            ue: self.ue.map(rounded),
            ce_minus_be: self.ce_minus_be.map(rounded),
            ue_minus_ce: self.ue_minus_ce.map(rounded),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holdout::two_thirds;
    use super::{ClassificationError, DivisionErrors};

    #[test]
    fn errors_of_divisions_are_averaged_with_their_spread() {
        let of = |ce, be, ue| DivisionErrors {
            ce,
            raw: Some((be, ue)),
        };
        let divisions = [
            of(0.25, 0.125, 0.5),
            of(0.5, 0.25, 0.5),
            of(0.75, 0.375, 0.5),
        ];
        let found = ClassificationError::mean(&divisions, &two_thirds(9, 0)).unwrap();
        assert_eq!((found.ce, found.ce_spread), (0.5, 0.25));
        assert_eq!((found.be, found.ue), (Some(0.25), Some(0.5)));
        assert_eq!(found.ce_minus_be, Some(0.25));
        assert_eq!(found.ue_minus_ce, Some(0.0));
        assert_eq!(
            (found.repeats, found.trained_rows, found.tested_rows),
            (3, 6, 3)
        );
        assert_eq!(ClassificationError::mean(&[], &two_thirds(9, 0)), None);
    }

    #[test]
    fn without_raw_figures_there_is_the_error_on_the_release_alone() {
        let divisions = [DivisionErrors {
            ce: 0.125,
            raw: None,
        }];
        let found = ClassificationError::mean(&divisions, &two_thirds(3, 0)).unwrap();
        assert_eq!((found.ce, found.ce_spread, found.be), (0.125, 0.0, None));
        let json = serde_json::to_value(found).unwrap();
        assert!(json.get("ue").is_none() && json.get("ce_minus_be").is_none());
    }

    #[test]
    fn only_what_raw_rows_show_is_rounded() {
        let found = ClassificationError {
            ce: 0.18765,
            be: Some(0.14321),
            ue: Some(0.24784),
            ce_minus_be: Some(-0.004444),
            ..ClassificationError::default()
        };
        let found = found.rounded();
        assert_eq!(
            (found.ce, found.be, found.ue),
            (0.18765, Some(0.14), Some(0.25))
        );
        assert_eq!(found.ce_minus_be, Some(-0.0044));
    }
}
