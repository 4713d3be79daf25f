//! Tables that stay readable on a narrow page, where each row is a block and each value has the title of
//! its column before it.

use maud::{Markup, html};

/// A column of a table.
pub(crate) struct Column<'a> {
    title: &'a str,
    is_number: bool,
}

impl<'a> Column<'a> {
    /// A column of text.
    pub(crate) fn text(title: &'a str) -> Self {
        let is_number = false;
        Self { title, is_number }
    }

    /// A column of numbers, which are at the right.
    pub(crate) fn number(title: &'a str) -> Self {
        let is_number = true;
        Self { title, is_number }
    }
}

/// A row of a table.
pub(crate) struct Row {
    /// What the row is about, in the first column.
    pub(crate) name: Markup,
    /// One for each further column; an empty one is left out of a block.
    pub(crate) cells: Vec<Markup>,
    /// Whether it stands out from the others.
    pub(crate) is_marked: bool,
}

impl Row {
    /// A row like the others.
    pub(crate) fn new(name: impl maud::Render, cells: Vec<Markup>) -> Self {
        Self {
            name: html! { (name) },
            cells,
            is_marked: false,
        }
    }
}

/// A table; the first column has the names of the rows.
pub(crate) fn table(first: &str, columns: &[Column], rows: &[Row]) -> Markup {
    let class = |column: &Column| column.is_number.then_some("n");
    html! {
        table.rows {
            thead {
                tr {
                    th scope="col" { (first) }
                    @for column in columns { th scope="col" class=[class(column)] { (column.title) } }
                }
            }
            tbody {
                @for row in rows {
                    tr class=[row.is_marked.then_some("released")] {
                        th scope="row" { (row.name) }
                        @for (column, cell) in columns.iter().zip(&row.cells) {
                            td data-title=(column.title) class=[class(column)] { (cell) }
                        }
                    }
                }
            }
        }
    }
}
