//! The average relative error of random counting queries on a release of groups (Gal, Chen,
//! Gangopadhyay 2008, *Experimental Evaluation*).
//!
//! A query counts the records that meet one to four conditions, one of them on a sensitive
//! column and the others on different quasi-identifiers. Each condition is an equality or a
//! range. A query is drawn around a record, so that the exact count is at least 1. The estimate
//! for a group is the share of its records that meet the conditions on quasi-identifiers, times
//! its number of records that meet the condition on the sensitive column. The share is exact in
//! an anatomized release; in a generalized one it is the share of each label's values that meet
//! the condition.

use pais_core::cancellation::Cancellation;
use serde::{Deserialize, Serialize};

use super::holder_only::{rounded, rounded_count};
use super::query_answers::{QueryAnswer, answers};
use super::query_table::{Query, QueryTable};

/// A query is large if it counts at least 1 / `LARGE` of the rows.
const LARGE: u64 = 100;

/// Average relative errors of random count queries: *|estimate - exact| / exact*.
///
/// They are computed from raw rows, so a report has them rounded to two significant digits, and
/// for the holder alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueryError {
    /// Number of queries.
    pub queries: u64,
    /// Over all of them.
    pub all: f64,
    /// Standard error of `all`: how far the mean over other queries drawn alike is from it.
    #[serde(default)]
    pub standard_error: f64,
    /// Over those that count fewer than 1 % of the rows; 0 where there are none.
    pub below_one_percent: f64,
    /// Over those that count 1 % of the rows or more; 0 where there are none.
    pub from_one_percent: f64,
    /// How many count 1 % of the rows or more.
    pub queries_from_one_percent: u64,
}

impl QueryError {
    /// The errors with two significant digits.
    pub(super) fn rounded(self) -> Self {
        Self {
            queries: rounded_count(self.queries),
            all: rounded(self.all),
            standard_error: rounded(self.standard_error),
            below_one_percent: rounded(self.below_one_percent),
            from_one_percent: rounded(self.from_one_percent),
            queries_from_one_percent: rounded_count(self.queries_from_one_percent),
        }
    }
}

impl QueryTable {
    /// The errors of random queries. Returns `None` if no row has a sensitive value, and when stopped.
    pub(super) fn error(&self, cancellation: &Cancellation) -> Option<QueryError> {
        let drawn: Vec<Query> = self.draw();
        let rows = self.sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
        let answers = answers(self, &drawn, cancellation)?;
        (!answers.is_empty()).then(|| QueryError::of_answers(&answers, rows))
    }
}

impl QueryError {
    /// The errors of queries on a table of this many rows, each with an exact count of at least 1.
    pub(super) fn of_answers(answers: &[QueryAnswer], rows: u64) -> Self {
        let relative = |answer: &QueryAnswer| {
            let exact = answer.exact as f64;
            (answer.estimate - exact).abs() / exact
        };
        let mean = |keeps: &dyn Fn(u64) -> bool| {
            let kept = answers.iter().filter(|answer| keeps(answer.exact));
            let (count, sum) = kept.fold((0u64, 0.0), |(count, sum), answer| {
                (count + 1, sum + relative(answer))
            });
            (count, if count == 0 { 0.0 } else { sum / count as f64 })
        };
        let is_large = |exact: u64| exact * LARGE >= rows;
        let (queries, all) = mean(&|_| true);
        let (large, from_one_percent) = mean(&is_large);
        let (_, below_one_percent) = mean(&|exact| !is_large(exact));
        let squares = answers
            .iter()
            .map(|answer| (relative(answer) - all).powi(2));
        let count = queries as f64;
        let standard_error = (squares.sum::<f64>() / (count - 1.0).max(1.0) / count).sqrt();
        Self {
            queries,
            all,
            standard_error,
            below_one_percent,
            from_one_percent,
            queries_from_one_percent: large,
        }
    }
}
