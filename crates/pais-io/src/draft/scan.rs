//! Reads the rows of a file for a draft: every column as text, by the readers of submissions.

use std::io::{Cursor, Read};

use pais_core::definition::{ColumnKind, DatasetDefinition};
use pais_core::schema::Schema;
use pais_core::table::{ReadErrorKind, Table, ValueCounters};
use serde_json::json;

use super::encoding::FoundText;
use super::kind::{FileHabits, shown_order};
use super::missing::WORDS;
use super::numbers::FORMS;
use super::observed::{ColumnType, Observed};
use super::proposal::{self, FileColumn, FileFacts};
use super::{Draft, DraftFailure, DraftOptions, MOST_ROWS, delimiter, json_types, refused};
use crate::read::parquet::ChunkReader;
use crate::read::{self, ReadFailure, TextFormat, TextParameters};

/// Size of the beginning of a text in which its delimiter, its names and its types are found, in
/// bytes.
const HEAD_BYTES: u64 = 1 << 20;

pub(super) fn csv(
    mut source: impl Read,
    given: TextParameters,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    let mut decoded = FoundText::new(&mut source, given.encoding);
    let head = head(&mut decoded)?;
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
        let (decimal, thousands) = FORMS[form].marks();
        given.decimal.is_none_or(|given| given == decimal)
            && given.thousands.is_none_or(|given| Some(given) == thousands)
            && FORMS[form].decimal != char::from(delimiter.byte())
    });
    let marks = form.map(|form| FORMS[form].marks());
    let (decimal, thousands) = marks.unzip();
    let format = text_format(TextParameters {
        delimiter: Some(delimiter),
        decimal: given.decimal.or(decimal),
        thousands: given.thousands.or(thousands.flatten()),
        encoding: given.encoding.or(Some(decoded.encoding())),
    })?;
    rows.draft(options.name, format, form.unwrap_or(0))
}

fn text_format(parameters: TextParameters) -> Result<TextFormat, DraftFailure> {
    let format = parameters.format(TextFormat::CSV);
    format.map_err(|error| refused(ReadErrorKind::Malformed, error.to_string()))
}

pub(super) fn ndjson(
    mut source: impl Read,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    let head = head(&mut source)?;
    let text = match std::str::from_utf8(&head) {
        Ok(text) => text,
        // The reader refuses the rest.
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let keys = json_types::keys(text.trim_start_matches('\u{feff}'));
    if keys.is_empty() {
        let read = read::ndjson::names(head.as_slice());
        if let Some(failure) = read.err().and_then(DraftFailure::of) {
            return Err(failure);
        }
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

pub(super) fn parquet<R: ChunkReader + 'static>(
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

/// The reader is asked to stop.
struct EnoughRows;

/// The rows of a file, read as text.
struct Rows {
    /// All columns, which are stored and not compared.
    schema: Schema,
    columns: Vec<FileColumn>,
    counters: ValueCounters,
    rows: u64,
    is_whole: bool,
}

impl Rows {
    /// Columns with their types and the separators of their lists.
    fn new(
        columns: impl Iterator<Item = (String, Option<ColumnType>, Option<char>)>,
        options: DraftOptions<'_>,
    ) -> Result<Self, DraftFailure> {
        let columns: Vec<FileColumn> = columns
            .map(|(name, declared, list_separator)| FileColumn {
                name,
                observed: Observed::new(declared),
                list_separator,
            })
            .collect();
        check_names(&columns, options.columns)?;
        Ok(Self {
            schema: text_schema(&columns)?,
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
        for (column, cells) in self.columns.iter_mut().zip(&chunk.columns) {
            column.observed.add(cells);
        }
        Ok(())
    }

    /// Ends the rows, of which enough or all were read.
    fn end(&mut self, read: Result<u64, ReadFailure<EnoughRows>>) -> Result<(), DraftFailure> {
        if let Err(failure) = read
            && let Some(failure) = DraftFailure::of(failure)
        {
            return Err(failure);
        }
        for (column, counted) in self.columns.iter_mut().zip(self.counters.counts()) {
            column.observed.distinct = counted.counts.distinct;
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
                .filter(|column| column.numbers.range(form).is_some())
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
        let proposed = proposal::propose(name, &self.columns, file);
        let (dataset, reasons) =
            proposed.map_err(|error| refused(ReadErrorKind::Header, error.detail))?;
        Ok(Draft {
            dataset,
            format,
            reasons,
        })
    }
}

/// Checks that the names can be those of a dataset. The messages do not contain them.
fn check_names(columns: &[FileColumn], most: usize) -> Result<(), DraftFailure> {
    if columns.len() > most {
        let detail = format!(
            "the file has {} columns; a dataset has at most {most}",
            columns.len()
        );
        return Err(refused(ReadErrorKind::Header, detail));
    }
    let mut names = std::collections::HashSet::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let name = column.name.as_str();
        let detail = if name.is_empty() {
            "has no name; write a name for each column in the first row"
        } else if name.len() > 200 || name.contains('\0') {
            "has a name of more than 200 bytes or with NUL; check whether the first row has names"
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
        let mut fields = json!({"name": column.name, "role": "insensitive", "missing": WORDS});
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
