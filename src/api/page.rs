//! Lists in pages that do not shift while rows are added: `?limit=` and `?cursor=`, and the answer.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::problem::{Code, Problem};

/// `?limit=` and `?cursor=` of a list whose items have ids.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(value_type = Option<Uuid>)]
    pub cursor: Option<String>,
}

impl PageQuery {
    /// Checks the parameters.
    ///
    /// # Errors
    /// `invalid_parameter`.
    pub fn parse(&self) -> Result<PageRequest<Uuid>, Problem> {
        page_request(self.limit, self.cursor.as_deref())
    }
}

/// `?limit=` and `?cursor=` of a list whose items are numbered.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NumberedPageQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,9}$")]
    pub cursor: Option<String>,
}

impl NumberedPageQuery {
    /// Checks the parameters.
    ///
    /// # Errors
    /// `invalid_parameter`.
    pub fn parse<C: FromStr>(&self) -> Result<PageRequest<C>, Problem> {
        page_request(self.limit, self.cursor.as_deref())
    }
}

/// Checks the parameters of a page, whose cursor is an id or a number.
///
/// # Errors
/// `invalid_parameter`.
pub(crate) fn page_request<C: FromStr>(
    limit: Option<i64>,
    cursor: Option<&str>,
) -> Result<PageRequest<C>, Problem> {
    let limit = u16::try_from(limit.unwrap_or(100)).ok();
    let limit = limit.filter(|limit| (1..=1000).contains(limit));
    let limit = limit.ok_or_else(|| {
        Problem::new(
            Code::InvalidParameter,
            "`limit` must be a number from 1 to 1000",
        )
    })?;
    let after = cursor.map(str::parse).transpose().map_err(|_| {
        Problem::new(
            Code::InvalidParameter,
            "`cursor` must be the `next_cursor` of the page before",
        )
    })?;
    Ok(PageRequest { after, limit })
}

/// The requested page. The cursor is the id of a row, or its number.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<C = Uuid> {
    /// The cursor of the last row of the previous page; `None` for the first page.
    pub after: Option<C>,
    /// Number of rows on a page, 1 to 1000.
    pub limit: u16,
}

impl<C> PageRequest<C> {
    /// Number of rows to query: one more than fit on the page, which shows whether there are more.
    pub(crate) fn rows_to_query(&self) -> i64 {
        i64::from(self.limit) + 1
    }
}

impl PageRequest<u32> {
    /// The number of the first row of the page.
    pub(crate) fn first(&self) -> u32 {
        self.after.map_or(0, |after| after.saturating_add(1))
    }
}

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The items, at most `limit`.
    pub items: Vec<T>,
    /// Where the next page starts; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page of `rows`, of which [`PageRequest::rows_to_query`] were queried.
    pub(crate) fn new<C: ToString>(
        mut rows: Vec<T>,
        request: PageRequest<C>,
        cursor: impl Fn(&T) -> C,
    ) -> Self {
        let limit = usize::from(request.limit);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Self::part(rows, has_more, cursor)
    }

    /// Makes a page of all of `rows`; `has_more` is whether there are rows after them.
    pub(crate) fn part<C: ToString>(
        rows: Vec<T>,
        has_more: bool,
        cursor: impl Fn(&T) -> C,
    ) -> Self {
        let last = rows.last().filter(|_| has_more);
        let next_cursor = last.map(|row| cursor(row).to_string());
        Self {
            items: rows,
            next_cursor,
        }
    }

    /// The same page with other items.
    pub(crate) fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(convert).collect(),
            next_cursor: self.next_cursor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, PageRequest};

    #[test]
    fn only_a_page_with_rows_after_it_has_a_cursor() {
        let request = PageRequest {
            after: Some(4u32),
            limit: 2,
        };
        assert_eq!((request.first(), request.rows_to_query()), (5, 3));
        let page = Page::new(vec![5, 6, 7], request, |&row| row);
        assert_eq!(
            (page.items, page.next_cursor),
            (vec![5, 6], Some("6".to_owned()))
        );
        let last = Page::new(vec![7, 8], request, |&row| row);
        assert_eq!((last.items, last.next_cursor), (vec![7, 8], None));
    }
}
