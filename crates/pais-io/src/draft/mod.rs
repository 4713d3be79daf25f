//! Proposes the definition of a dataset from a file with its rows.
//!
//! The rows are read once, in chunks, up to `MOST_ROWS`; memory does not grow with the file. The proposal gives
//! reasons for each column, in sentences that contain no value of a cell but well-known ones for missing cells.

mod codes;
mod dates;
mod delimiter;
mod doubt;
mod encoding;
mod families;
mod hierarchy;
mod items;
mod json_types;
mod kind;
mod missing;
mod numbers;
mod observed;
mod order;
mod pairs;
mod proposal;
mod role;
mod rounding;
mod safe_harbor;
mod sketch;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::{Cursor, Read};

use pais_core::definition::{ColumnKind, DatasetDefinition};
use pais_core::missing_words::MISSING_WORDS;
use pais_core::name_meaning::NameMeaning;
use pais_core::safe_harbor::SafeHarborCategory;
use pais_core::schema::{MOST_NAME_BYTES, Schema};
use pais_core::table::{ReadError, ReadErrorKind, Table, ValueCounters};
use serde::Serialize;
use serde_json::json;
use serde_with::{Map, serde_as};

use crate::read::parquet::ChunkReader;
use crate::read::{self, ReadFailure, ReadLimits, TextEncoding, TextFormat, TextParameters};
use encoding::FoundText;
use kind::{FileHabits, shown_order};
use numbers::{FORMS, marks};
use observed::{FileColumn, Observed};
use pairs::Pairs;
use proposal::{Answers, FileFacts, Proposal};

pub use doubt::{Answer, Doubt};
pub(crate) use observed::ColumnType;

/// Number of rows after which no further chunk is read.
pub(crate) const MOST_ROWS: u64 = 200_000;

/// A proposed definition.
#[serde_as]
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Draft {
    /// A body for `POST /v1/datasets`.
    pub dataset: DatasetDefinition,
    /// How the text of the file is written, as the parameters of a submission.
    pub format: TextFormat,
    /// Column to the reasons for its proposal, in the order of the file.
    #[serde_as(as = "Map<_, _>")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = std::collections::BTreeMap<String, Vec<String>>)
    )]
    pub reasons: Vec<(String, Vec<String>)>,
    /// What nothing in the file decides. The proposal has the first choice of each.
    pub doubts: Vec<Doubt>,
    /// Column to the category of identifiers of HIPAA (45 CFR 164.514(b)(2)) that it probably is; columns
    /// of none are left out.
    #[serde_as(as = "Map<_, _>")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = std::collections::BTreeMap<String, SafeHarborCategory>)
    )]
    pub safe_harbor: Vec<(String, SafeHarborCategory)>,
    /// What is known of the file, from which answers make another proposal.
    #[serde(skip)]
    evidence: Evidence,
}

impl Draft {
    /// The draft in which doubts are answered: a column with one of the choices of its doubt. An answer for a
    /// column also applies to the columns with the same question. Other answers change nothing.
    ///
    /// ```
    /// use pais_io::draft::{self, Answer, DraftOptions};
    /// use pais_io::read::TextParameters;
    ///
    /// let rows = "seen,cough\n01/02/2020,y\n03/04/2020,n\n05/06/2020,y\n";
    /// let draft = draft::csv(rows.as_bytes(), TextParameters::default(), DraftOptions::default());
    /// let draft = draft.unwrap();
    /// assert_eq!(draft.doubts[0].choices, ["%m/%d/%Y", "%d/%m/%Y"]);
    /// let answer = Answer { column: "seen".to_owned(), choice: "%d/%m/%Y".to_owned() };
    /// let answered = draft.answered(&[answer]).unwrap();
    /// assert_eq!(answered.dataset.columns[0].format.as_deref(), Some("%d/%m/%Y"));
    /// ```
    ///
    /// # Errors
    /// [`ReadErrorKind::Header`] for answers that do not form a dataset, such as a second class.
    pub fn answered(&self, answers: &[Answer]) -> Result<Self, ReadError> {
        let mut all = Answers::new();
        for doubt in &self.doubts {
            let given = |column: &String| {
                let mut given = answers.iter().filter(|it| it.column == *column);
                given.find(|it| doubt.choices.contains(&it.choice))
            };
            for column in std::iter::once(&doubt.column).chain(&doubt.also) {
                if let Some(answer) = given(column).or_else(|| given(&doubt.column)) {
                    let choices = all.entry(column.clone()).or_default();
                    choices.push(answer.choice.clone());
                }
            }
        }
        let mut draft = self.evidence.clone().draft(self.format, &all)?;
        draft.dataset.format.clone_from(&self.dataset.format);
        Ok(draft)
    }
}

/// What is known about a file after its rows were read.
#[derive(Clone, Debug)]
struct Evidence {
    name: String,
    columns: Vec<FileColumn>,
    pairs: Pairs,
    file: FileFacts,
}

impl Evidence {
    fn draft(self, format: TextFormat, answers: &Answers) -> Result<Draft, ReadError> {
        let Self {
            name,
            columns,
            pairs,
            file,
        } = &self;
        let proposed = proposal::propose(name, columns, pairs, *file, answers);
        let Proposal {
            dataset,
            reasons,
            doubts,
            safe_harbor,
        } = proposed.map_err(|error| ReadError::new(ReadErrorKind::Header, error.detail))?;
        Ok(Draft {
            dataset,
            format,
            reasons,
            doubts,
            safe_harbor,
            evidence: self,
        })
    }
}

/// How a file is read for a draft.
#[derive(Clone, Copy, Debug)]
pub struct DraftOptions<'n> {
    /// The name of the proposed dataset.
    pub name: &'n str,
    /// Limits on the file.
    pub limits: ReadLimits,
    /// Maximum number of columns of a dataset.
    pub columns: usize,
}

impl Default for DraftOptions<'_> {
    /// The name `draft`, and any number of columns.
    fn default() -> Self {
        Self {
            name: "draft",
            limits: ReadLimits::default(),
            columns: usize::MAX,
        }
    }
}

/// Why there is no draft: the file is refused, or the source failed.
pub type DraftFailure = ReadFailure<Infallible>;

/// Size of the beginning of a text in which its delimiter, its names and its types are found, in
/// bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Proposes a definition for the rows of a CSV file. The parts of its format that `given` leaves out are
/// detected from its text.
///
/// ```
/// use pais_io::draft::{self, DraftOptions};
/// use pais_io::read::TextParameters;
///
/// let rows = "ID;Geburtsdatum;Gewicht\n1;03.09.1987;71,5\n2;31.12.1990;80,25\n";
/// let draft = draft::csv(rows.as_bytes(), TextParameters::default(), DraftOptions::default());
/// let draft = serde_json::to_value(draft.unwrap())?;
/// assert_eq!(draft["format"]["delimiter"], ";");
/// assert_eq!(draft["format"]["decimal"], ",");
/// assert_eq!(draft["dataset"]["columns"][0]["role"], "identifier");
/// assert_eq!(draft["dataset"]["columns"][1]["format"], "%d.%m.%Y");
/// assert_eq!(draft["dataset"]["columns"][2]["kind"], "numeric");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// As [`crate::read::csv::read_as`]. [`ReadErrorKind::Header`] for names that do not form a dataset.
pub fn csv(
    mut source: impl Read + Send,
    given: TextParameters,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    let mut decoded = FoundText::new(&mut source, given.encoding);
    let head = head(&mut decoded)?;
    let is_utf16 = decoded.encoding() == TextEncoding::Utf16;
    if given.encoding == Some(TextEncoding::Utf16) && !is_utf16 && !head.is_empty() {
        let detail =
            "the file has no byte order mark of UTF-16; save the file with one, or as UTF-8";
        return Err(refused(ReadErrorKind::Malformed, detail));
    }
    let is_cut = head.len() as u64 == HEAD_BYTES;
    let (delimiter, header) = delimiter::find(&head, is_cut, &given);
    let names = header.into_iter().map(String::from_utf8);
    let names = names.collect::<Result<Vec<_>, _>>().map_err(|_| {
        let detail = "the header is not text of the file's encoding; name the file's `encoding`";
        refused(ReadErrorKind::Malformed, detail)
    })?;
    if head.is_empty() {
        let detail = "the file is empty; send a header row and at least one row";
        return Err(refused(ReadErrorKind::Empty, detail));
    }
    let mut rows = Rows::new(names.into_iter().map(|name| (name, None, None)), options)?;
    let parameters = TextParameters {
        delimiter: Some(delimiter),
        ..TextParameters::default()
    };
    // Numbers are read as text, so that only the delimiter matters.
    let read_as = text_format(parameters)?;
    let schema = rows.schema.clone();
    let text = Cursor::new(head).chain(&mut decoded);
    let read = read::csv::read_as(&schema, text, read_as, options.limits, None, |chunk| {
        rows.add(&chunk)
    });
    rows.end(read)?;
    let form = rows.number_form(|form| {
        let (decimal, thousands) = marks(form);
        given.decimal.is_none_or(|given| given == decimal)
            && given.thousands.is_none_or(|given| Some(given) == thousands)
            && FORMS[form].decimal != char::from(delimiter.byte())
    });
    let (decimal, thousands) = form.map(marks).unzip();
    let format = text_format(TextParameters {
        delimiter: Some(delimiter),
        decimal: given.decimal.or(decimal),
        thousands: given.thousands.or(thousands.flatten()),
        encoding: given.encoding.or(Some(decoded.encoding())),
    })?;
    let mut draft = rows.draft(options.name, format, form.unwrap_or(0))?;
    draft.dataset.format = Some(format.into());
    Ok(draft)
}

fn text_format(parameters: TextParameters) -> Result<TextFormat, DraftFailure> {
    let format = parameters.format(TextFormat::CSV);
    format.map_err(|error| refused(ReadErrorKind::Malformed, error.to_string()))
}

/// Proposes a definition for the records of an NDJSON file.
///
/// # Errors
/// As [`crate::read::ndjson::read`]. [`ReadErrorKind::Header`] for keys that do not form a dataset.
pub fn ndjson(mut source: impl Read, options: DraftOptions<'_>) -> Result<Draft, DraftFailure> {
    let head = head(&mut source)?;
    let text = match std::str::from_utf8(&head) {
        Ok(text) => text,
        // The reader refuses the rest.
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let keys = json_types::keys(text.trim_start_matches('\u{feff}'));
    if keys.is_empty() {
        let read = read::ndjson::names(head.as_slice());
        read?;
        let detail = "the file has no records with keys; write one object per line";
        return Err(refused(ReadErrorKind::Empty, detail));
    }
    let columns = keys
        .into_iter()
        .map(|key| (key.name, key.declared, key.separator));
    let mut rows = Rows::new(columns, options)?;
    let schema = rows.schema.clone();
    let text = Cursor::new(head).chain(source);
    let read = read::ndjson::read(&schema, text, options.limits, |chunk| rows.add(&chunk));
    rows.end(read)?;
    rows.draft(options.name, TextFormat::CSV, 0)
}

/// Proposes a definition for the rows of a Parquet file.
///
/// # Errors
/// As [`crate::read::parquet::read`]. [`ReadErrorKind::Header`] for names that do not form a dataset.
pub fn parquet<R: ChunkReader + 'static>(
    source: R,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    let columns = read::parquet::column_types(&source)?;
    let columns = columns
        .into_iter()
        .map(|(name, declared)| (name, declared, None));
    let mut rows = Rows::new(columns, options)?;
    let schema = rows.schema.clone();
    let read = read::parquet::read(&schema, source, options.limits, |chunk| rows.add(&chunk));
    rows.end(read)?;
    rows.draft(options.name, TextFormat::CSV, 0)
}

/// The beginning of a source.
fn head(source: &mut impl Read) -> Result<Vec<u8>, DraftFailure> {
    let mut head = Vec::new();
    let read = source.take(HEAD_BYTES).read_to_end(&mut head);
    read.map_err(DraftFailure::Source)?;
    Ok(head)
}

/// Asks the reader to stop.
struct EnoughRows;

/// The rows of a file, read as text.
struct Rows {
    /// All columns, which are stored and not compared.
    schema: Schema,
    columns: Vec<FileColumn>,
    counters: ValueCounters,
    pairs: Pairs,
    rows: u64,
    is_whole: bool,
}

impl Rows {
    /// Columns with their types and the separators of their lists. They are counted first: each takes
    /// about a kilobyte, and a header of a megabyte can have half a million.
    fn new(
        columns: impl ExactSizeIterator<Item = (String, Option<ColumnType>, Option<char>)>,
        options: DraftOptions<'_>,
    ) -> Result<Self, DraftFailure> {
        if columns.len() > options.columns {
            let detail = format!(
                "the file has {} columns; a dataset has at most {} (limits.columns)",
                columns.len(),
                options.columns
            );
            return Err(refused(ReadErrorKind::Header, detail));
        }
        let columns: Vec<FileColumn> = columns
            .map(|(name, declared, list_separator)| FileColumn {
                name,
                observed: Observed::new(declared),
                list_separator,
            })
            .collect();
        check_names(&columns)?;
        Ok(Self {
            schema: text_schema(&columns)?,
            pairs: Pairs::new(columns.len(), |position| {
                NameMeaning::of(&columns[position].name).is_key_of_persons()
            }),
            columns,
            counters: ValueCounters::default(),
            rows: 0,
            is_whole: true,
        })
    }

    fn add(&mut self, chunk: &Table) -> Result<(), EnoughRows> {
        if self.rows >= MOST_ROWS {
            self.is_whole = false;
            return Err(EnoughRows);
        }
        self.rows += chunk.rows as u64;
        self.counters.push(self.schema.stored().zip(&chunk.columns));
        self.pairs.add(chunk);
        for (column, cells) in self.columns.iter_mut().zip(&chunk.columns) {
            column.observed.add(cells);
        }
        Ok(())
    }

    /// Ends the rows, of which enough or all were read.
    fn end(&mut self, read: Result<u64, ReadFailure<EnoughRows>>) -> Result<(), DraftFailure> {
        match read {
            Err(ReadFailure::Refused(error)) => return Err(error.into()),
            Err(ReadFailure::Source(error)) => return Err(ReadFailure::Source(error)),
            Ok(_) | Err(ReadFailure::Sink(EnoughRows)) => {}
        }
        let counted_up_to = ValueCounters::exact_up_to(self.columns.len());
        for (column, counted) in self.columns.iter_mut().zip(self.counters.counts()) {
            let distinct = counted.counts.distinct;
            column.observed.is_estimated = distinct > counted_up_to;
            column.observed.distinct = distinct.min(column.observed.rows);
        }
        Ok(())
    }

    /// The form in which most columns are numbers; `None` where no column is, or no form is
    /// admitted.
    fn number_form(&self, is_admitted: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best = None;
        for form in (0..FORMS.len()).filter(|&form| is_admitted(form)) {
            let numbers = self.columns.iter().map(|column| &column.observed);
            let numbers = numbers
                .filter(|column| column.range(form).is_some())
                .count();
            if best.is_none_or(|(_, most)| numbers > most) {
                best = Some((form, numbers));
            }
        }
        best.map(|(form, _)| form)
    }

    fn draft(
        self,
        name: &str,
        format: TextFormat,
        number_form: usize,
    ) -> Result<Draft, DraftFailure> {
        let mut orders = self
            .columns
            .iter()
            .filter_map(|column| shown_order(&column.observed));
        let shown = orders.next();
        // A comma in numbers is a habit of countries in which the day is first.
        let is_american = format.delimiter().byte() == b',';
        let file = FileFacts {
            habits: FileHabits {
                number_form,
                is_month_first: shown.unwrap_or(is_american),
                is_order_shown: shown.is_some(),
            },
            rows: self.rows,
            is_whole: self.is_whole,
        };
        let evidence = Evidence {
            name: name.to_owned(),
            columns: self.columns,
            pairs: self.pairs,
            file,
        };
        Ok(evidence.draft(format, &Answers::new())?)
    }
}

/// Checks that the names can be those of a dataset. The messages do not contain them.
fn check_names(columns: &[FileColumn]) -> Result<(), DraftFailure> {
    let mut names = HashSet::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let name = column.name.as_str();
        let detail = if name.is_empty() {
            "has no name; write a name for each column in the first row"
        } else if name.len() > MOST_NAME_BYTES || name.contains('\0') {
            "has a name of more than 1,024 bytes or with NUL; check whether the first row has names"
        } else if !names.insert(name) {
            "has the name of an earlier column; give each column a name of its own"
        } else {
            continue;
        };
        let detail = format!("column {} of the file {detail}", index + 1);
        return Err(refused(ReadErrorKind::Header, detail));
    }
    Ok(())
}

/// A schema by which every cell is read as it is written.
fn text_schema(columns: &[FileColumn]) -> Result<Schema, DraftFailure> {
    let column = |column: &FileColumn| {
        let mut fields =
            json!({"name": column.name, "role": "insensitive", "missing": MISSING_WORDS});
        if column.observed.declared == Some(ColumnType::List) {
            fields["kind"] = json!(ColumnKind::Set);
            fields["separator"] = json!(column.list_separator.unwrap_or('|'));
        }
        fields
    };
    let columns: Vec<_> = columns.iter().map(column).collect();
    let definition = json!({"name": "draft", "columns": columns});
    let invalid = |detail: String| refused(ReadErrorKind::Header, detail);
    let definition: DatasetDefinition =
        serde_json::from_value(definition).map_err(|error| invalid(error.to_string()))?;
    Schema::inline(&definition).map_err(|error| invalid(error.detail))
}

fn refused(kind: ReadErrorKind, detail: impl Into<String>) -> DraftFailure {
    ReadError::new(kind, detail).into()
}
