//! A page of a list.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::page::Listing;

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The items, at most `limit`.
    pub items: Vec<T>,
    /// Where the next page starts; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T, C: ToString> From<Listing<T, C>> for Page<T> {
    fn from(listing: Listing<T, C>) -> Self {
        Self {
            items: listing.items,
            next_cursor: listing.next.map(|cursor| cursor.to_string()),
        }
    }
}
