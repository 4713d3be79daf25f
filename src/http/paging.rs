//! Lists in pages that stay put while rows arrive.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::problem::{Code, Problem};

/// `?limit=` and `?cursor=`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The items, at most `limit`.
    pub items: Vec<T>,
    /// Where the next page starts; null on the last one.
    pub next_cursor: Option<String>,
}

/// A page asked for: the id after which it starts, and its size.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// Exclusive.
    pub after: Option<Uuid>,
    /// 1 to 1000.
    pub limit: i64,
}

impl PageQuery {
    /// Checks the parameters.
    ///
    /// # Errors
    /// `invalid_parameter`.
    pub fn parse(&self) -> Result<PageRequest, Problem> {
        let limit = self.limit.unwrap_or(100);
        if !(1..=1000).contains(&limit) {
            return Err(Problem::new(
                Code::InvalidParameter,
                "`limit` is a number from 1 to 1000",
            ));
        }
        let after = self
            .cursor
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|_| {
                Problem::new(
                    Code::InvalidParameter,
                    "`cursor` is the `next_cursor` of a page before",
                )
            })?;
        Ok(PageRequest { after, limit })
    }
}

impl<T> Page<T> {
    /// Cuts `rows`, of which one more than `limit` was asked for, to a page.
    pub fn cut(mut rows: Vec<T>, request: PageRequest, id: impl Fn(&T) -> Uuid) -> Self {
        let limit = request.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| more).map(|row| id(row).to_string());
        Self {
            items: rows,
            next_cursor,
        }
    }
}
