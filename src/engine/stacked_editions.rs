//! All editions of a publication as one table, rendered into a file.

use std::path::PathBuf;
use std::sync::Arc;

use pais_core::codebook::Codebook;
use pais_core::table::ReleasedTable;
use pais_editions::{EditionLabels, NumberedTable, common_labels, stacked};

use crate::db::StoreError;
use crate::db::releases::{self, StoredTable};

use super::publication_job::EDITION_COLUMN;
use super::rendered_tables::{Renderer, SpooledFile};
use super::rendering::{Rendering, render};
use super::{WorkError, release_packing};

/// The labels of the table.
pub(crate) enum StackLabels {
    /// Those of each edition.
    AsReleased,
    /// The finest labels that cover those of all editions, by the codebook of each.
    Common(Vec<Codebook>),
}

/// The table of an edition, without its rows.
pub(crate) struct EditionTable {
    /// The number of the edition.
    pub(crate) number: u32,
    /// Its table.
    pub(crate) table: StoredTable,
}

/// Editions to be rendered as one table.
pub(crate) struct Stacked {
    /// The name of the file, without the ending. It says which editions and labels the table has.
    pub(crate) name: String,
    /// Which labels it has.
    pub(crate) labels: StackLabels,
    /// The editions, oldest first.
    pub(crate) tables: Vec<EditionTable>,
}

impl Renderer<'_> {
    /// The path of the file with the editions in a format, as [`Self::render`].
    ///
    /// # Errors
    /// `busy`; `limit_exceeded`; when the database or the disk fails.
    pub(crate) async fn render_stack(
        &self,
        stack: &Arc<Stacked>,
        rendering: &Rendering,
    ) -> Result<PathBuf, WorkError> {
        let tables = || stack.tables.iter().map(|edition| &edition.table);
        let bytes = tables().map(|table| {
            let columns = table.columns.len() as u64 + 1;
            let codes = table.rows.saturating_mul(columns).saturating_mul(16);
            codes.saturating_add(table.csv_bytes.saturating_mul(4))
        });
        let first = tables().next().ok_or(StoreError::Damaged("an edition"))?;
        let file = SpooledFile {
            name: format!(
                "{}-{}.{}",
                stack.name,
                env!("CARGO_PKG_VERSION"),
                rendering.file_ending()
            ),
            owner: first.organization,
            bytes: bytes.fold(0, u64::saturating_add),
        };
        let load = async || {
            let mut all = Vec::with_capacity(stack.tables.len());
            for table in tables() {
                all.push(releases::chunks(self.db, table).await?);
            }
            Ok(all)
        };
        let (stack, rendering) = (stack.clone(), rendering.clone());
        let write = move |all, out| render(&build(&stack, all)?, &rendering, None, out);
        self.spooled(file, load, write).await
    }
}

fn build(stack: &Stacked, chunks: Vec<Vec<Vec<u8>>>) -> Result<ReleasedTable, WorkError> {
    let editions = stack.tables.iter().zip(chunks);
    let tables = editions.map(|(edition, chunks)| release_packing::unpack(&edition.table, chunks));
    let tables: Vec<ReleasedTable> = tables.collect::<Result<_, _>>()?;
    let labels = match &stack.labels {
        StackLabels::AsReleased => None,
        StackLabels::Common(codebooks) => {
            let editions = codebooks.iter().zip(&tables);
            let editions = editions.map(|(codebook, table)| EditionLabels { table, codebook });
            let editions: Vec<EditionLabels> = editions.collect();
            Some(common_labels(&editions))
        }
    };
    let editions = stack.tables.iter().zip(tables);
    let numbered = editions.map(|(edition, table)| NumberedTable {
        number: edition.number,
        table,
    });
    let numbered: Vec<NumberedTable> = numbered.collect();
    Ok(stacked(EDITION_COLUMN, &numbered, labels.as_ref()))
}
