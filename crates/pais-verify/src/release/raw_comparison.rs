//! Compares a release by one global cut with the raw rows while these are read.

use std::iter::repeat;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::parallel;
use pais_core::reimport;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{
    Column, Domain, EncodedTable, NULL_CODE, Positioned, ReleasedColumn, Table, minimum_levels,
};
use pais_core::taxonomy::Interval;

use super::streamed::{StreamedColumn, StreamedVerification};
use super::{FoundRecoding, RawFinding, ReleaseError, ReleaseVerification};
use crate::matched_columns::{LabelledColumn, MissingCells};
use crate::row_sum::RowSum;
use crate::{DistinctRelease, OriginalQuasiIdentifier};

/// Marks a raw text that is not released: no released row can have this code.
const NOTHING: u32 = NULL_CODE - 1;

/// Rows whose sum one thread makes at a time.
const BLOCK: usize = 16_384;

/// A comparison of a release, all of whose rows were read, with the raw rows, in chunks of any size and
/// in any order. It keeps no raw value.
///
/// It decides whether the release is the image of all raw rows under one cut:
/// - Each raw value of a quasi-identifier is covered by exactly one label of its column, which is not
///   below the pre-generalization. This is exact.
/// - The rows of these labels and of the unchanged values are the released rows, with the same multiplicities.
///   This is decided by the sums of a keyed 128-bit hash over the rows of both sides, with a key drawn for each
///   verification. Different rows have equal sums with a probability of at most 2^-97.
pub struct RawComparison {
    verification: StreamedVerification,
    /// The quasi-identifiers, each with all of its labels.
    labels: Vec<ReleasedColumn>,
    /// By quasi-identifier, whether a raw value was not missing.
    has_values: Vec<bool>,
    rows: u64,
    /// Whether each raw value so far is released.
    is_image: bool,
    sum: RowSum,
}

/// What raw texts are released as, for rows whose cells are codes of them.
pub struct RawTexts {
    /// By released column, its place in the raw rows.
    columns: Vec<(usize, ReleasedTexts)>,
}

/// By code what a raw cell is released as.
struct ReleasedTexts {
    texts: Vec<u32>,
    null: u32,
}

impl ReleasedTexts {
    /// Of a column whose cells are its texts in their order, and then null.
    fn of(released: impl Iterator<Item = u32>, texts: usize) -> Self {
        let mut texts_and_null: Vec<u32> = released.take(texts + 1).collect();
        Self {
            null: texts_and_null.pop().unwrap_or(NOTHING),
            texts: texts_and_null,
        }
    }

    fn of_code(&self, code: u32) -> u32 {
        match code {
            NULL_CODE => self.null,
            code => self.texts.get(code as usize).copied().unwrap_or(NOTHING),
        }
    }
}

impl StreamedVerification {
    /// Whether the release can be compared with the raw rows while these are read.
    ///
    /// # Errors
    /// [`ReleaseError::NeedsAllRows`] if it cannot: under a schema with a subject column or with
    /// hierarchies that are made from the raw rows, and for a job that pre-generalizes a column without a
    /// taxonomy of its own or continues the cut of one.
    pub fn can_compare(&self) -> Result<(), ReleaseError> {
        if self.schema.subject().is_some() {
            return Err(ReleaseError::NeedsAllRows("a subject column"));
        }
        if self.schema.has_made_hierarchies() {
            return Err(ReleaseError::NeedsAllRows(
                "a hierarchy that is made from the rows",
            ));
        }
        let continued = self
            .job
            .continued_cut
            .iter()
            .flat_map(|cut| cut.labels.keys());
        let lowest = self
            .job
            .pre_generalization
            .iter()
            .flat_map(|levels| levels.keys());
        let mut names = continued
            .map(|name| &**name)
            .chain(lowest.map(|name| &**name));
        let is_flat = |name: &str| {
            let mut stored = self.schema.stored().filter(|spec| spec.name() == name);
            stored.any(|spec| spec.tree().is_none() && !spec.has_grown_intervals())
        };
        if names.any(is_flat) {
            return Err(ReleaseError::NeedsAllRows(
                "a bound on the labels of a column without a taxonomy",
            ));
        }
        Ok(())
    }

    /// Continues with the raw rows, after all rows of the release.
    ///
    /// # Errors
    /// As [`Self::can_compare`]; [`ReleaseError::NeedsAllRows`] too for a release without one of the
    /// insensitive columns.
    pub fn compare(self) -> Result<RawComparison, ReleaseError> {
        self.can_compare()?;
        let is_released = |spec: &SchemaColumn| {
            let mut columns = self.columns.iter();
            columns.any(|column| *column.released.name == *spec.name())
        };
        if !self.schema.stored().all(is_released) {
            return Err(ReleaseError::NeedsAllRows("a column that is left out"));
        }
        let generalized = self.columns.iter();
        let generalized = generalized.filter(|it| it.role == ColumnRole::QuasiIdentifier);
        let labels: Vec<ReleasedColumn> = generalized.map(StreamedColumn::labels).collect();
        Ok(RawComparison {
            has_values: vec![false; labels.len()],
            labels,
            rows: 0,
            is_image: true,
            sum: self.sum.empty(),
            verification: self,
        })
    }
}

impl RawComparison {
    /// Receives raw rows, with the stored columns of the schema as they were read.
    ///
    /// # Errors
    /// As [`Self::texts`] and [`Self::add_codes`].
    pub fn add(&mut self, rows: Table, cancellation: &Cancellation) -> Result<(), ReleaseError> {
        let columns = rows.columns.into_iter();
        let (texts, codes): (Vec<_>, Vec<_>) = columns
            .map(|column| (column.dictionary, column.codes))
            .unzip();
        let texts = self.texts(texts)?;
        let codes: Vec<&[u32]> = codes.iter().map(Vec::as_slice).collect();
        self.add_codes(&texts, &codes, cancellation)
    }

    /// What the texts of raw rows are released as; `texts` has those of each stored column of the
    /// schema, and one entry of each may be of no row.
    ///
    /// # Errors
    /// [`ReleaseError::Malformed`] for another number of columns, [`ReleaseError::Job`] for a
    /// pre-generalization that does not fit.
    pub fn texts(&mut self, texts: Vec<Vec<Box<str>>>) -> Result<RawTexts, ReleaseError> {
        let schema = &self.verification.schema;
        let stored: Vec<&SchemaColumn> = schema.stored().collect();
        if stored.len() != texts.len() {
            return Err(ReleaseError::Malformed(
                "a raw column is not declared".into(),
            ));
        }
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let rows = lengths.iter().copied().max().unwrap_or(0) + 1;
        let columns = texts.into_iter().map(|dictionary| Column {
            codes: (0..dictionary.len() as u32)
                .chain(repeat(NULL_CODE))
                .take(rows)
                .collect(),
            dictionary,
        });
        let columns = columns.collect();
        let mut each = EncodedTable::new(schema, Table { rows, columns });
        for column in &mut each.quasi_identifiers {
            let spec = stored[column.position];
            // These texts are one number at most, but others may be more. The codes are the same.
            if let Domain::Taxonomy(tree) = &column.domain
                && spec.has_grown_intervals()
            {
                let scale = spec.scale();
                let leaves = (0..tree.leaf_count() as u32).map(|leaf| tree.node(tree.leaf(leaf)));
                let numbers = leaves.filter_map(|leaf| Interval::parse_on(&leaf.label, scale));
                column.domain = Domain::Numeric {
                    values: numbers.map(|number| number.lo).collect(),
                    lo: 0.0,
                    hi: 0.0,
                    missing: true,
                    scale,
                    round: None,
                    ends: None,
                };
            }
        }
        let minimum_levels = minimum_levels(&self.verification.job, schema, &each)?;
        let mut columns = Vec::with_capacity(stored.len());
        for (place, released) in self.labels.iter().enumerate() {
            let mut raw = each.quasi_identifiers.iter();
            let raw = raw
                .find(|raw| raw.name == released.name)
                .ok_or_else(undeclared)?;
            self.has_values[place] |= match &raw.domain {
                Domain::Numeric { values, .. } => !values.is_empty(),
                Domain::Taxonomy(_) => true,
            };
            let original = OriginalQuasiIdentifier {
                name: &raw.name,
                domain: &raw.domain,
                declared_domain: stored[raw.position].domain().is_some(),
                codes: raw.codes.borrowed(),
                minimum_levels: minimum_levels.get(&raw.name),
            };
            let labelled = LabelledColumn::new(&original, released);
            let Some(cut) = labelled.cut(MissingCells::OwnLabel) else {
                self.is_image = false;
                continue;
            };
            let none = labelled.label_count() as u32;
            let label = |code: u32| match cut.get(code as usize) {
                Some(&label) if label != none => label,
                _ => NOTHING,
            };
            // Padding is null, so that the cell after the texts is.
            let labels = (0..raw.codes.rows()).map(|row| label(raw.codes.at(row)));
            let texts = ReleasedTexts::of(labels, lengths[raw.position]);
            columns.push((raw.position, texts));
        }
        for released in &self.verification.columns[self.labels.len()..] {
            let mut raw = each.untouched.iter();
            let raw = raw.find(|it| stored[it.position].name() == &*released.released.name);
            let Positioned { position, column } = raw.ok_or_else(undeclared)?;
            let column = reimport::rewritten(stored[*position], column.clone());
            let values: Vec<u32> = column
                .dictionary
                .iter()
                .map(|text| released.compared(text).unwrap_or(NOTHING))
                .collect();
            let cells = column.codes.iter();
            let cells = cells.map(|&code| values.get(code as usize).copied().unwrap_or(NULL_CODE));
            columns.push((*position, ReleasedTexts::of(cells, lengths[*position])));
        }
        Ok(RawTexts { columns })
    }

    /// Receives raw rows as codes of texts, by stored column of the schema; [`NULL_CODE`] is null.
    ///
    /// # Errors
    /// [`ReleaseError::Malformed`] for columns of different lengths; [`ReleaseError::Cancelled`].
    pub fn add_codes(
        &mut self,
        texts: &RawTexts,
        codes: &[&[u32]],
        cancellation: &Cancellation,
    ) -> Result<(), ReleaseError> {
        let rows = codes.first().map_or(0, |codes| codes.len());
        let is_column = |(place, _): &(usize, ReleasedTexts)| {
            codes.get(*place).is_some_and(|codes| codes.len() == rows)
        };
        if !texts.columns.iter().all(is_column) {
            let detail = "the columns of the raw rows have different lengths";
            return Err(ReleaseError::Malformed(detail.into()));
        }
        self.rows += rows as u64;
        if !self.is_image {
            return Ok(());
        }
        let sums = parallel::map(0..rows.div_ceil(BLOCK), |block| {
            let (mut sum, mut is_image) = (self.sum.empty(), !cancellation.is_cancelled());
            let of_block = block * BLOCK..rows.min((block + 1) * BLOCK);
            of_block.for_each(|row| {
                let columns = texts.columns.iter();
                sum.add(columns.map(|(place, texts)| {
                    let released = texts.of_code(codes[*place][row]);
                    is_image &= released != NOTHING;
                    released
                }));
            });
            (sum, is_image)
        });
        for (sum, is_image) in sums {
            self.sum.merge(&sum);
            self.is_image &= is_image;
        }
        cancellation.check()?;
        Ok(())
    }

    /// What was found in the release and in its comparison with the raw rows. `None` where the release is not
    /// the image of all raw rows under one cut: rows are made up, changed, lost or suppressed, or labels of a
    /// column overlap. Finding out how many rows these are, and whether they may be suppressed, takes all rows
    /// at once: see [`super::verify_release`].
    ///
    /// # Errors
    /// As [`StreamedVerification::finish`].
    pub fn finish(
        self,
        cancellation: &Cancellation,
    ) -> Result<Option<ReleaseVerification>, ReleaseError> {
        self.finish_with(cancellation, drop)
    }

    /// As [`Self::finish`]; `take` gets the distinct rows of a release that is the image of the raw rows.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_with(
        self,
        cancellation: &Cancellation,
        take: impl FnOnce(DistinctRelease),
    ) -> Result<Option<ReleaseVerification>, ReleaseError> {
        let of_release = &self.verification;
        let mut columns = self.labels.iter().zip(&self.has_values);
        // For a column of only missing cells, no interval is true.
        let is_true = columns
            .all(|(labels, &has_values)| has_values || !has_interval(&of_release.schema, labels));
        let is_image = self.is_image
            && is_true
            && self.rows == of_release.rows()
            && self.sum.equals(&of_release.sum);
        if !is_image {
            return Ok(None);
        }
        let raw = RawFinding {
            rows: self.rows,
            made_up: 0,
            lost: 0,
            may_be_lost: of_release.job.suppression_limit.floor_of(self.rows),
            recoding: FoundRecoding::Global,
        };
        let mut found = self.verification.finish_with(cancellation, take)?;
        found.raw = Some(raw);
        Ok(Some(found))
    }
}

fn undeclared() -> ReleaseError {
    ReleaseError::Malformed("a released column is not declared".into())
}

/// Whether a released column without a declared domain has an interval.
fn has_interval(schema: &Schema, labels: &ReleasedColumn) -> bool {
    let mut columns = schema.stored().filter(|spec| *spec.name() == *labels.name);
    columns.any(|spec| {
        let mut labels = labels.column.dictionary.iter();
        spec.domain().is_none() && labels.any(|it| Interval::parse_on(it, spec.scale()).is_some())
    })
}
