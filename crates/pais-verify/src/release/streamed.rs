//! Verifies a release by one global cut while its rows are read, in memory proportional to its distinct rows
//! instead of its rows.

use std::hash::BuildHasher;
use std::iter::repeat_n;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnKind, ColumnRole, Job, Recoding};
use pais_core::model::{Lkc, PrivacyModel};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{
    Column, NULL_CODE, ReleasedColumn, ReleasedTable, TellingSample, UnchangedColumn,
    UnchangedRisk, row_warnings,
};
use pais_core::warning::by_code;

use super::{ReleaseError, ReleaseVerification, Undecided};
use crate::classes::only_column;
use crate::distinct_rows::DistinctRows;
use crate::row_sum::RowSum;
use crate::{DistinctRelease, ModelColumns, PrivacyFinding, VerifyError};

/// Rows that are counted at a time: their codes stay in the cache.
const BLOCK: usize = 16_384;

/// Bytes that a distinct text takes in addition to its characters.
const TEXT_BYTES: u64 = 72;

/// A verification of a release that reads the rows once, in chunks of any size and in any order, and
/// keeps only the distinct combinations of released values with their numbers of rows.
///
/// It decides LKC-privacy and its special cases on a release with one label for each value of a column:
/// without sets, groups and local recoding. What it finds is what [`super::verify_release`] finds in the
/// same rows in the same order.
///
/// Where the raw rows are at hand, [`Self::compare`] continues with them.
///
/// ```
/// use pais_core::cancellation::Cancellation;
/// use pais_core::definition::{DatasetDefinition, Job, json};
/// use pais_core::model::Lkc;
/// use pais_core::reimport;
/// use pais_core::schema::{Schema, SchemaColumn};
/// use pais_io::read::csv;
/// use pais_verify::StreamedVerification;
///
/// let dataset: DatasetDefinition = json::parse(
///     br#"{"name": "a", "columns": [
///         {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]}]}"#,
/// )?;
/// let schema = Schema::inline(&dataset)?;
/// let job = Job::new(Lkc::k_anonymity(2)?);
/// let none = Cancellation::new();
///
/// let mut verification = StreamedVerification::new(&schema, &job, 1 << 20)?;
/// let read_by = reimport::columns(&schema, &["age".to_owned()]);
/// for part in ["age\n\"[0,50)\"\n", "age\n\"[0,50)\"\n"] {
///     let part = csv::read_table(&read_by, part.as_bytes())?;
///     verification.add(&reimport::released(&schema, &read_by, part, 2)?, &none)?;
/// }
/// let mut comparison = verification.compare()?;
/// comparison.add(csv::read_table(&schema, "age\n21\n25\n".as_bytes())?, &none)?;
/// let found = comparison.finish(&none)?.expect("the rows are those of the raw table");
/// assert!(found.holds());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StreamedVerification {
    pub(super) schema: Schema,
    pub(super) job: Job,
    model: Lkc,
    /// Maximum number of bytes of distinct rows and texts.
    verification_bytes: u64,
    pub(super) rows: u64,
    /// The released columns: quasi-identifiers, then sensitive ones, then the others.
    pub(super) columns: Vec<StreamedColumn>,
    /// By quasi-identifiers and sensitive columns.
    known: DistinctRows,
    /// By sensitive columns and the others.
    unchanged: DistinctRows,
    /// A sample of the numbers of `unchanged`.
    sample: TellingSample<u32>,
    pub(super) sum: RowSum,
    text_bytes: u64,
}

/// A released column without its rows. Each text has one code.
pub(super) struct StreamedColumn {
    /// Without codes.
    pub(super) released: ReleasedColumn,
    pub(super) role: ColumnRole,
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// By code, the value that a row is compared with the raw rows by: the code itself, or [`NULL_CODE`] for a
    /// word that means missing.
    compared: Vec<u32>,
}

/// A column of some rows that are added.
struct ChunkColumn<'c> {
    column: &'c Column,
    /// By code of `column`, the code of its text in [`StreamedColumn`]; [`NULL_CODE`] where no row has it.
    numbers: Vec<u32>,
    /// Bytes of the texts that no earlier row had.
    text_bytes: u64,
}

impl StreamedColumn {
    fn new(like: &ReleasedColumn, role: ColumnRole) -> Self {
        Self {
            released: ReleasedColumn {
                column: Column::default(),
                ..like.clone()
            },
            role,
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            compared: Vec::new(),
        }
    }

    /// The code of a text; `None` if no row so far has it.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let dictionary = &self.released.column.dictionary;
        let is_text = |&code: &u32| *dictionary[code as usize] == *text;
        self.known
            .find(self.hasher.hash_one(text), is_text)
            .copied()
    }

    /// The code of a text; a new one if no row so far has the text.
    fn code(&mut self, text: &str) -> u32 {
        if let Some(code) = self.find(text) {
            return code;
        }
        let Self {
            released,
            known,
            hasher,
            compared,
            ..
        } = self;
        let is_missing = released.is_missing(text);
        let dictionary = &mut released.column.dictionary;
        let code = dictionary.len() as u32;
        dictionary.push(text.into());
        compared.push(if is_missing { NULL_CODE } else { code });
        known.insert_unique(hasher.hash_one(text), code, |&code| {
            hasher.hash_one(&*dictionary[code as usize])
        });
        code
    }

    /// The value for comparing a text with the released rows; `None` if no released row has the text.
    pub(super) fn compared(&self, text: &str) -> Option<u32> {
        if self.released.is_missing(text) {
            return Some(NULL_CODE);
        }
        self.find(text)
    }

    /// The column of some rows.
    fn read<'c>(&mut self, rows: &'c ReleasedTable) -> Result<ChunkColumn<'c>, VerifyError> {
        let name = &self.released.name;
        let column = &only_column(rows, name)?.column;
        let mut occurs = vec![false; column.dictionary.len()];
        for &code in column.codes.iter().filter(|code| **code != NULL_CODE) {
            let occurs = occurs.get_mut(code as usize);
            *occurs.ok_or_else(|| VerifyError::UnknownCode {
                column: name.clone(),
            })? = true;
        }
        let (mut numbers, mut text_bytes) = (Vec::with_capacity(occurs.len()), 0);
        for (text, occurs) in column.dictionary.iter().zip(occurs) {
            let before = self.compared.len();
            numbers.push(if occurs { self.code(text) } else { NULL_CODE });
            if self.compared.len() > before {
                text_bytes += text.len() as u64 + TEXT_BYTES;
            }
        }
        Ok(ChunkColumn {
            column,
            numbers,
            text_bytes,
        })
    }

    /// The column with each text once, so that what is known of its labels does not need its rows.
    pub(super) fn labels(&self) -> ReleasedColumn {
        let mut labels = self.released.clone();
        labels.column.codes = (0..labels.column.dictionary.len() as u32).collect();
        labels
    }

    fn with_codes(&self, codes: Vec<u32>) -> ReleasedColumn {
        let mut column = self.released.clone();
        column.column.codes = codes;
        column
    }
}

/// The number of a code; [`NULL_CODE`] for null.
fn number_of(numbers: &[u32], code: u32) -> u32 {
    numbers.get(code as usize).copied().unwrap_or(NULL_CODE)
}

/// The values for comparing a row with the raw rows.
fn compared(columns: &[StreamedColumn], row: &[u32]) -> impl Iterator<Item = u32> {
    let cells = columns.iter().zip(row);
    cells.map(|(column, &code)| number_of(&column.compared, code))
}

impl StreamedVerification {
    /// A verification of rows under the model of `job`. Distinct rows and texts take at most
    /// `verification_bytes` bytes: for each combination of quasi-identifiers and sensitive values, and
    /// for each of sensitive and other unchanged values, 16 bytes for each of its columns and 64 more;
    /// for each text its length and 72 more.
    ///
    /// # Errors
    /// [`ReleaseError::Job`] for an invalid job, [`ReleaseError::NeedsAllRows`] for a release whose
    /// verification needs all rows at once.
    pub fn new(schema: &Schema, job: &Job, verification_bytes: u64) -> Result<Self, ReleaseError> {
        let schema = schema.with_roles(&job.roles)?.into_owned();
        let PrivacyModel::Lkc(model) = schema.privacy_model(job)? else {
            return Err(ReleaseError::NeedsAllRows("a model of groups or of items"));
        };
        if job.recoding == Some(Recoding::Local) {
            return Err(ReleaseError::NeedsAllRows("local recoding"));
        }
        if schema.stored().any(|spec| spec.kind() == ColumnKind::Set) {
            return Err(ReleaseError::NeedsAllRows("a set-valued column"));
        }
        Ok(Self {
            schema,
            job: job.clone(),
            model,
            verification_bytes,
            rows: 0,
            columns: Vec::new(),
            known: DistinctRows::new(0),
            unchanged: DistinctRows::new(0),
            sample: TellingSample::default(),
            sum: RowSum::new(),
            text_bytes: 0,
        })
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Receives rows of the release, as converted by [`pais_core::reimport::released`] from what was written.
    /// All chunks must have the same columns.
    ///
    /// # Errors
    /// [`ReleaseError::Malformed`] for rows that do not fit the schema or the rows before, and for more
    /// distinct rows than `verification_bytes` allow; [`ReleaseError::Cancelled`].
    pub fn add(
        &mut self,
        rows: &ReleasedTable,
        cancellation: &Cancellation,
    ) -> Result<(), ReleaseError> {
        if self.rows.saturating_add(rows.rows as u64) >= u64::from(u32::MAX) {
            return Err(VerifyError::TooManyRows.into());
        }
        if self.columns.is_empty() {
            self.begin(rows)?;
        }
        if rows.columns.len() != self.columns.len() {
            let detail = "the parts of the release have different columns";
            return Err(ReleaseError::Malformed(detail.into()));
        }
        let mut chunk = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let read = column.read(rows)?;
            self.text_bytes += read.text_bytes;
            chunk.push(read);
        }
        for start in (0..rows.rows).step_by(BLOCK) {
            cancellation.check()?;
            self.add_block(&chunk, start..rows.rows.min(start + BLOCK));
            let bytes = self.known.bytes() + self.unchanged.bytes() + self.text_bytes;
            if bytes > self.verification_bytes {
                let most = self.verification_bytes;
                return Err(VerifyError::TooManyDistinctRows { most }.into());
            }
        }
        self.rows += rows.rows as u64;
        Ok(())
    }

    /// Takes the columns from the first rows.
    fn begin(&mut self, rows: &ReleasedTable) -> Result<(), ReleaseError> {
        let mut columns = Vec::with_capacity(rows.columns.len());
        let order = [
            ColumnRole::QuasiIdentifier,
            ColumnRole::Sensitive,
            ColumnRole::Class,
            ColumnRole::Insensitive,
        ];
        for role in order {
            for spec in self.schema.stored().filter(|spec| spec.role() == role) {
                match rows.column(spec.name()) {
                    Some(like) => columns.push(StreamedColumn::new(like, role)),
                    None if role == ColumnRole::Insensitive => {}
                    None => {
                        let column = spec.name().into();
                        return Err(VerifyError::NoSuchColumn { column }.into());
                    }
                }
            }
        }
        let with = |roles: &[ColumnRole]| {
            let of_roles = columns.iter().filter(|column| roles.contains(&column.role));
            DistinctRows::new(of_roles.count())
        };
        self.known = with(&order[..2]);
        self.unchanged = with(&order[1..]);
        self.columns = columns;
        Ok(())
    }

    fn add_block(&mut self, chunk: &[ChunkColumn<'_>], rows: Range<usize>) {
        let width = self.columns.len();
        let mut codes = vec![0u32; rows.len() * width];
        for (place, read) in chunk.iter().enumerate() {
            let of_column = codes.iter_mut().skip(place).step_by(width);
            for (code, &of_chunk) in of_column.zip(&read.column.codes[rows.clone()]) {
                *code = number_of(&read.numbers, of_chunk);
            }
        }
        let Self {
            columns,
            known,
            unchanged,
            sample,
            sum,
            ..
        } = self;
        let (asked, others) = (known.width(), width - unchanged.width());
        let rows = || codes.chunks_exact(width);
        rayon::join(
            || rows().for_each(|row| sum.add(compared(columns, row))),
            || {
                rayon::join(
                    || {
                        rows().for_each(|row| {
                            known.add(&row[..asked]);
                        })
                    },
                    || rows().for_each(|row| sample.add(unchanged.add(&row[others..]))),
                )
            },
        );
    }

    /// What was found in the rows.
    ///
    /// # Errors
    /// [`ReleaseError::Malformed`] if there is too much to enumerate; [`ReleaseError::Cancelled`].
    pub fn finish(self, cancellation: &Cancellation) -> Result<ReleaseVerification, ReleaseError> {
        self.finish_with(cancellation, drop)
    }

    /// As [`Self::finish`]; `take` gets the distinct rows once they are verified.
    pub(super) fn finish_with(
        self,
        cancellation: &Cancellation,
        take: impl FnOnce(DistinctRelease),
    ) -> Result<ReleaseVerification, ReleaseError> {
        let Self {
            schema,
            model,
            rows,
            columns,
            known,
            unchanged,
            sample,
            ..
        } = self;
        let others = columns.len() - unchanged.width();
        let table = |columns: &[StreamedColumn], codes: Vec<Vec<u32>>, rows: usize| {
            let columns = columns.iter().zip(codes);
            ReleasedTable {
                name: "data".into(),
                rows,
                columns: columns
                    .map(|(column, codes)| column.with_codes(codes))
                    .collect(),
            }
        };
        let (codes, counts) = known.into_columns();
        let distinct = DistinctRelease {
            table: table(&columns, codes, counts.len()),
            rows: counts,
        };
        let names = schema.names(ColumnRole::QuasiIdentifier);
        let sensitive = schema.names(ColumnRole::Sensitive);
        let of_model = ModelColumns {
            quasi_identifiers: &names,
            sensitive: &sensitive,
        };
        let found = distinct.verify_model(of_model, &model, cancellation)?;
        take(distinct);

        let unchanged = UnchangedRows::new(unchanged);
        let distinct = table(&columns[others..], unchanged.codes, unchanged.counts.len());
        let of_schema = schema.stored().filter_map(|spec| {
            let column = &distinct.column(spec.name())?;
            Some((spec, &column.column))
        });
        let of_schema: Vec<(&SchemaColumn, &Column)> = of_schema.collect();
        let sampled = sample.kept().iter();
        let sampled: Vec<u32> = sampled.map(|&row| unchanged.first[row as usize]).collect();
        let columns = of_schema.iter().copied();
        let unchanged_risk = UnchangedRisk::of_distinct(columns, rows, &sampled, cancellation)?;
        let counted = of_schema
            .into_iter()
            .map(|(spec, column)| UnchangedColumn::of_distinct(spec, column, &unchanged.counts));
        let model = PrivacyModel::Lkc(model);
        let mut warnings = schema.model_warnings(&model);
        warnings.extend(row_warnings(&model, counted));
        let privacy = PrivacyFinding::Subsets(found);
        Ok(ReleaseVerification {
            undecided: Undecided::without_raw(&schema, &model, &privacy),
            model,
            privacy: Some(privacy),
            subjects: None,
            raw: None,
            unchanged: unchanged_risk,
            warnings: by_code(warnings),
        })
    }
}

/// The distinct rows of unchanged columns as a table that has each of them once or twice, for counting the rows
/// that are singled out.
struct UnchangedRows {
    /// By column.
    codes: Vec<Vec<u32>>,
    /// By row, its multiplicity.
    counts: Vec<u32>,
    /// The first row of each distinct one.
    first: Vec<u32>,
}

impl UnchangedRows {
    fn new(distinct: DistinctRows) -> Self {
        let (codes, rows) = distinct.into_columns();
        let twice = |codes: Vec<u32>| {
            let codes = codes.iter().zip(&rows);
            let codes = codes.flat_map(|(&code, &rows)| repeat_n(code, rows.min(2) as usize));
            codes.collect()
        };
        let codes = codes.into_iter().map(twice).collect();
        let (mut counts, mut first) = (Vec::new(), Vec::with_capacity(rows.len()));
        for &rows in &rows {
            first.push(counts.len() as u32);
            counts.push(1);
            if let Some(others) = rows.checked_sub(1).filter(|others| *others > 0) {
                counts.push(others);
            }
        }
        Self {
            codes,
            counts,
            first,
        }
    }
}
