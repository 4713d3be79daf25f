//! Lists in pages that do not shift while rows are added.

use uuid::Uuid;

/// The page that a caller asks for. The cursor is the id of a row, or its number.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<C = Uuid> {
    /// The cursor of the last row of the page before; `None` for the first page.
    pub after: Option<C>,
    /// Number of rows on a page, 1 to 1000.
    pub limit: u16,
}

impl<C> PageRequest<C> {
    /// Number of rows to query: one more than fit on the page, which shows whether there are more.
    pub(super) fn rows_to_query(&self) -> i64 {
        i64::from(self.limit) + 1
    }
}

impl PageRequest<u32> {
    /// The number of the first row of the page.
    pub(super) fn first(&self) -> u32 {
        self.after.map_or(0, |after| after.saturating_add(1))
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Listing<T, C = Uuid> {
    /// The rows, at most [`PageRequest::limit`].
    pub items: Vec<T>,
    /// The cursor of the last row; `None` on the last page.
    pub next: Option<C>,
}

impl<T, C> Listing<T, C> {
    /// Makes a page of `rows`, of which [`PageRequest::rows_to_query`] were queried.
    pub(super) fn new(mut rows: Vec<T>, request: PageRequest<C>, cursor: impl Fn(&T) -> C) -> Self {
        let limit = usize::from(request.limit);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(cursor);
        Self { items: rows, next }
    }

    /// The same page with other items.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Listing<U, C> {
        Listing {
            items: self.items.into_iter().map(convert).collect(),
            next: self.next,
        }
    }

    /// The same page with other items, if all of them can be converted.
    pub(super) fn try_map<U, E>(
        self,
        convert: impl FnMut(T) -> Result<U, E>,
    ) -> Result<Listing<U, C>, E> {
        Ok(Listing {
            items: self
                .items
                .into_iter()
                .map(convert)
                .collect::<Result<_, E>>()?,
            next: self.next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Listing, PageRequest};

    #[test]
    fn only_a_page_with_rows_after_it_has_a_cursor() {
        let request = PageRequest {
            after: Some(4u32),
            limit: 2,
        };
        assert_eq!((request.first(), request.rows_to_query()), (5, 3));
        let page = Listing::new(vec![5, 6, 7], request, |&row| row);
        assert_eq!((page.items, page.next), (vec![5, 6], Some(6)));
        let last = Listing::new(vec![7, 8], request, |&row| row);
        assert_eq!((last.items, last.next), (vec![7, 8], None));
    }
}
