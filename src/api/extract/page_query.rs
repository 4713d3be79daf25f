//! `?limit=` and `?cursor=` of lists.

use std::str::FromStr;

use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::problem::{Code, Problem};
use crate::service::page::PageRequest;

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
