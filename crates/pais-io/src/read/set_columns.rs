//! Sets that a file has as several columns, with an item in each.

use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::ReadError;

use crate::read::cells::{Refusal, SetCell, check_text, oversized};
use crate::read::chunk_builder::ChunkBuilder;

/// Collects the items of a row's sets, whose columns can be in any order, and adds the cells of the
/// sets at its end. An item is that of a column of `from`, in the order of the schema.
pub(super) struct SetColumns<'s> {
    sets: Vec<SetOfColumns<'s>>,
    items: Vec<Item>,
}

struct SetOfColumns<'s> {
    slot: usize,
    spec: &'s SchemaColumn,
}

#[derive(Default)]
struct Item {
    text: Vec<u8>,
    refusal: Option<Refusal>,
}

impl<'s> SetColumns<'s> {
    /// The stored sets of a schema that are made of several columns.
    pub(super) fn new(schema: &'s Schema) -> Self {
        let stored = schema.stored().enumerate();
        let made = stored.filter(|(_, spec)| !spec.from().is_empty());
        let sets: Vec<_> = made
            .map(|(slot, spec)| SetOfColumns { slot, spec })
            .collect();
        let items = sets.iter().map(|set| set.spec.from().len()).sum();
        Self {
            sets,
            items: std::iter::repeat_with(Item::default).take(items).collect(),
        }
    }

    /// Puts a cell of the current row into its set.
    pub(super) fn put(&mut self, item: usize, cell: &[u8], limit: usize) {
        let item = &mut self.items[item];
        if cell.len() > limit {
            item.refusal = Some(oversized(limit))
        } else {
            item.text.extend_from_slice(cell)
        }
    }

    /// Puts a cell that has no text into its set.
    pub(super) fn refuse(&mut self, item: usize, refusal: Refusal) {
        self.items[item].refusal = Some(refusal);
    }

    /// Adds the sets of the current row to a chunk. Empty and missing cells are not items.
    ///
    /// # Errors
    /// If a cell cannot be decoded.
    pub(super) fn end_row(
        &mut self,
        builder: &mut ChunkBuilder<'_>,
        line: impl Fn() -> u64,
    ) -> Result<(), ReadError> {
        let mut rest = &mut self.items[..];
        for SetOfColumns { slot, spec } in &self.sets {
            let (items, others) = rest.split_at_mut(spec.from().len());
            rest = others;
            match joined(spec, items, builder.cell_bytes()) {
                Ok(cell) => builder.push_cell(Some(*slot), cell.as_bytes(), &line)?,
                Err(refusal) => builder.refuse_cell(Some(*slot), refusal, line())?,
            }
            for item in items {
                item.text.clear();
            }
        }
        Ok(())
    }
}

/// The cell of a set, as a file would have it in one column.
fn joined(spec: &SchemaColumn, items: &mut [Item], limit: usize) -> Result<String, Refusal> {
    let refusals = items.iter_mut().map(|item| item.refusal.take());
    if let Some(refusal) = refusals.fold(None, Option::or) {
        return Err(refusal);
    }
    let mut cell = SetCell::new(spec, limit);
    for item in items.iter() {
        let text = check_text(&item.text)?;
        if !text.trim().is_empty() && !spec.is_missing(text) {
            cell.add(text)?;
        }
    }
    cell.text().map(str::to_owned)
}
