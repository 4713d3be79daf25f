//! A table in a file: its format, which the file extension or flags give, and how it is read and written.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pais::problem::{Code, Problem};
use pais_anonymize::{Count, Observer, Phase, Unobserved};
use pais_core::schema::Schema;
use pais_core::table::ReadError;
use pais_core::table::{ReleasedTable, Table};
use pais_io::FileFormat;
use pais_io::chunk::Assembler;
use pais_io::draft::{self, Draft, DraftOptions};
use pais_io::read::{
    DecimalMark, Delimiter, IdentifierRepeats, ReadFailure, ReadLimits, TextEncoding, TextFormat,
    TextParameters, ThousandsMark, csv, ndjson, parquet,
};

use super::new_file::NewFile;
use super::output::{Failure, in_file, refuse_unwritable};

/// The accepted file extensions, for error messages.
const EXTENSIONS: &str = ".csv, .tsv, .ndjson, each of them also with .gz or .zst, or .parquet";

/// Compression level for zstd: the default of the `zstd` program.
const ZSTD_LEVEL: i32 = 3;

/// Share of the reading phase that parsing takes; the rest is the engine's encoding.
const PARSING_SHARE: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileCompression {
    None,
    Gzip,
    Zstd,
}

/// A table in a file, or in standard input.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    is_standard_input: bool,
    format: FileFormat,
    compression: FileCompression,
}

impl TableFile {
    /// The table file at a path, which need not exist yet.
    ///
    /// # Errors
    /// If the file extension is not one of the accepted ones.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        Self::by_extension(path).ok_or_else(|| match path.metadata() {
            // The extension is not what is wrong with a mistyped name.
            Err(missing) => Failure::file(path, missing),
            Ok(_) => {
                let detail = format!("unknown file extension; expected {EXTENSIONS}");
                Failure::file(path, detail)
            }
        })
    }

    fn by_extension(path: &Path) -> Option<Self> {
        let (stem, compression) = compression(path);
        let format = match stem.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv") => FileFormat::CSV,
            Some("tsv") => FileFormat::TSV,
            Some("ndjson") => FileFormat::Ndjson,
            Some("parquet") if compression == FileCompression::None => FileFormat::Parquet,
            _ => return None,
        };
        Some(Self {
            path: path.to_owned(),
            is_standard_input: false,
            format,
            compression,
        })
    }

    /// Its media type, without its compression.
    pub(crate) fn media_type(&self) -> &'static str {
        self.format.media_type()
    }

    /// Its compression as `Content-Encoding`; `None` where it is not compressed.
    pub(crate) fn content_encoding(&self) -> Option<&'static str> {
        match self.compression {
            FileCompression::None => None,
            FileCompression::Gzip => Some("gzip"),
            FileCompression::Zstd => Some("zstd"),
        }
    }

    /// The table file to write at a path.
    ///
    /// # Errors
    /// As [`Self::of`], for TSV, which is not written, and for a path that cannot be written.
    pub(crate) fn output(path: &Path) -> Result<Self, Failure> {
        let file = Self::by_extension(path).filter(|file| file.format != FileFormat::TSV);
        let file = file.ok_or_else(|| {
            let detail = "a release is written as .csv or .ndjson, each of them also with .gz or .zst, or \
                          as .parquet";
            Failure::file(path, detail)
        })?;
        refuse_unwritable(path)?;
        Ok(file)
    }

    /// The table to read at a path, where `-` is standard input, in a format that its extension need not
    /// say.
    ///
    /// # Errors
    /// If neither the format nor an accepted file extension is given.
    pub(crate) fn input(path: &Path, format: Option<FormatName>) -> Result<Self, Failure> {
        let format = format.map(FileFormat::from);
        let is_standard_input = path == Path::new(STANDARD_INPUT);
        match format.or(is_standard_input.then_some(FileFormat::CSV)) {
            None => Self::of(path),
            Some(format) if is_standard_input => Ok(Self {
                path: "standard input".into(),
                is_standard_input,
                format,
                compression: FileCompression::None,
            }),
            Some(format) => Ok(Self {
                path: path.to_owned(),
                is_standard_input,
                format,
                compression: compression(path).1,
            }),
        }
    }

    /// The same table, whose text is written as the flags say, or else as its dataset declares.
    ///
    /// # Errors
    /// For parameters that contradict each other, and for flags of a table that is no text.
    pub(crate) fn written_as(
        mut self,
        flags: &TextParameters,
        declared: &TextParameters,
    ) -> Result<Self, Failure> {
        let format = match self.format {
            FileFormat::Text(default) => {
                let mut declared = *declared;
                if default != TextFormat::CSV {
                    declared.delimiter = None;
                }
                let text = flags.or_declared(&declared);
                text.format(default).map(FileFormat::Text)
            }
            other if flags.is_empty() => Ok(other),
            FileFormat::Ndjson | FileFormat::Parquet => {
                let detail = "--delimiter, --decimal, --thousands and --encoding are for CSV and TSV; \
                              leave them out";
                return Err(Failure::file(&self.path, detail));
            }
        };
        self.format = format.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(self)
    }

    /// Whether it is read from standard input.
    pub(crate) fn is_standard_input(&self) -> bool {
        self.is_standard_input
    }

    /// The line of the first row.
    pub(crate) fn first_line(&self) -> u64 {
        self.format.first_line()
    }

    /// Whether it can be read again: standard input and pipes cannot.
    pub(crate) fn is_read_once(&self) -> bool {
        self.is_standard_input || !self.path.is_file()
    }

    /// Reads a raw table.
    ///
    /// # Errors
    /// If the file cannot be read, or its rows do not match the schema.
    pub(crate) fn read(&self, schema: &Schema) -> Result<Table, Failure> {
        self.read_observed(schema, None, &Unobserved::default())
    }

    /// Like [`Self::read`], counts in `repeats` the identifiers of a file that is not Parquet, and reports the
    /// rows read to `observer`. For a Parquet file the share
    /// of the file is not reported, because it is not read from start to end.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_observed(
        &self,
        schema: &Schema,
        repeats: Option<&mut IdentifierRepeats>,
        observer: &dyn Observer,
    ) -> Result<Table, Failure> {
        let mut assembler = Assembler::default();
        let file = self.file()?;
        let position = file.try_clone();
        let position = position.map_err(|error| Failure::file(&self.path, error))?;
        let mut rows = 0;
        self.read_file(file, schema, repeats, |chunk| {
            rows += chunk.rows as u64;
            observer.counted(Count::RowsRead(rows));
            observer.progress(Phase::Reading, PARSING_SHARE * share_read(&position));
            push(&mut assembler, chunk)
        })?;
        Ok(assembler.finish())
    }

    /// Reads a table and passes its rows to `chunk`, a bounded number at a time.
    ///
    /// # Errors
    /// If the file cannot be read, or its rows do not match the schema; those of `chunk`.
    pub(crate) fn read_chunks(
        &self,
        schema: &Schema,
        chunk: impl FnMut(Table) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.read_file(self.file()?, schema, None, chunk)
    }

    fn read_file(
        &self,
        file: File,
        schema: &Schema,
        repeats: Option<&mut IdentifierRepeats>,
        chunk: impl FnMut(Table) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // The whole file may be of any size, because the memory is the user's own.
        let limits = ReadLimits::default();
        let read = match self.format {
            FileFormat::Text(format) => {
                let source = self.decompressed(file)?;
                csv::read_as(schema, source, format, limits, repeats, chunk)
            }
            FileFormat::Ndjson => {
                let source = self.decompressed(file)?;
                ndjson::read_counting(schema, source, limits, repeats, chunk)
            }
            FileFormat::Parquet => parquet::read(schema, file, limits, chunk),
        };
        read.map(drop).map_err(|failure| match failure {
            ReadFailure::Refused(error) => self.refused(error),
            ReadFailure::Source(error) => self.unread(&error),
            ReadFailure::Sink(failure) => failure,
        })
    }

    /// Proposes a schema for a raw table.
    ///
    /// # Errors
    /// If the file cannot be read, or its rows are those of no dataset.
    pub(crate) fn draft(
        &self,
        given: TextParameters,
        options: DraftOptions<'_>,
    ) -> Result<Draft, Failure> {
        let draft = match self.format {
            FileFormat::Text(format) => {
                // A format other than commas is one that the user, or the ending, has named.
                let named = Some(format.delimiter()).filter(|it| *it != Delimiter::COMMA);
                let delimiter = given.delimiter.or(named);
                let given = TextParameters { delimiter, ..given };
                draft::csv(self.decompressed(self.file()?)?, given, options)
            }
            FileFormat::Ndjson => draft::ndjson(self.decompressed(self.file()?)?, options),
            FileFormat::Parquet => draft::parquet(self.file()?, options),
        };
        draft.map_err(|failure| self.failure(failure))
    }

    /// The names of a table's columns, in order.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        match self.format {
            FileFormat::Text(format) => csv::names(self.decompressed(self.file()?)?, format)
                .map_err(|failure| self.failure(failure)),
            FileFormat::Ndjson => ndjson::names(self.decompressed(self.file()?)?)
                .map_err(|failure| self.failure(failure)),
            FileFormat::Parquet => parquet::names(&self.file()?).map_err(|it| self.refused(it)),
        }
    }

    /// Writes a released table to a file that is still to be completed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, table: &ReleasedTable) -> Result<NewFile, Failure> {
        NewFile::write(&self.path, |out| match self.compression {
            FileCompression::None => self.format.write(table, out),
            FileCompression::Gzip => {
                let level = flate2::Compression::default();
                let mut packed = flate2::write::GzEncoder::new(out, level);
                self.format.write(table, &mut packed)?;
                packed.finish().map(drop)
            }
            FileCompression::Zstd => {
                let mut packed = zstd::Encoder::new(out, ZSTD_LEVEL)?;
                self.format.write(table, &mut packed)?;
                packed.finish().map(drop)
            }
        })
    }

    fn file(&self) -> Result<File, Failure> {
        let opened = if self.is_standard_input {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(&self.path)
        };
        opened.map_err(|error| Failure::file(&self.path, error))
    }

    fn decompressed(
        &self,
        file: impl Read + Send + 'static,
    ) -> Result<Box<dyn Read + Send>, Failure> {
        Ok(match self.compression {
            FileCompression::None => Box::new(file),
            FileCompression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            FileCompression::Zstd => {
                Box::new(zstd::Decoder::new(file).map_err(|error| self.unread(&error))?)
            }
        })
    }

    fn failure(&self, failure: ReadFailure<Infallible>) -> Failure {
        match failure {
            ReadFailure::Refused(error) => self.refused(error),
            ReadFailure::Source(error) => self.unread(&error),
            ReadFailure::Sink(never) => match never {},
        }
    }

    /// The failure of a command that could not read the table to its end.
    fn unread(&self, error: &io::Error) -> Failure {
        if self.compression == FileCompression::None || error.raw_os_error().is_some() {
            return Failure::file(&self.path, error);
        }
        // An error that is not the system's is of the decompression.
        let detail = format!("it cannot be decompressed ({error}); check that it is complete");
        in_file(
            self.path.display(),
            Problem::new(Code::MalformedBody, detail),
        )
        .into()
    }

    /// The failure of a command for which the table is not fit.
    pub(super) fn refused(&self, error: ReadError) -> Failure {
        in_file(self.path.display(), error).into()
    }
}

/// Appends a chunk to those before.
///
/// # Errors
/// For a chunk with another number of columns, which no reader makes.
pub(super) fn push(assembler: &mut Assembler, chunk: Table) -> Result<(), Failure> {
    let pushed = assembler.push(chunk);
    pushed.map_err(|error| Problem::new(Code::Internal, error.to_string()).into())
}

/// The name of a file in lower case without the extension of its compression, and that.
fn compression(path: &Path) -> (String, FileCompression) {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_lowercase();
    match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
        (Some(stem), _) => (stem.to_owned(), FileCompression::Gzip),
        (_, Some(stem)) => (stem.to_owned(), FileCompression::Zstd),
        _ => (name, FileCompression::None),
    }
}

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// How the text of a raw table is written.
#[derive(Debug, Args)]
pub(crate) struct TextFlags {
    /// The delimiter between cells of a raw text table: one character or `tab`.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<Delimiter>,
    /// The decimal mark of its numbers: `.` or `,`.
    #[arg(long, value_name = "CHARACTER")]
    decimal: Option<DecimalMark>,
    /// The thousands separator of its numbers: one character.
    #[arg(long, value_name = "CHARACTER")]
    thousands: Option<ThousandsMark>,
    /// Its encoding: utf-8, iso-8859-1, windows-1252 or utf-16.
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<TextEncoding>,
}

impl TextFlags {
    /// What the flags say.
    pub(crate) fn parameters(&self) -> TextParameters {
        TextParameters {
            delimiter: self.delimiter,
            decimal: self.decimal,
            thousands: self.thousands,
            encoding: self.encoding,
        }
    }
}

/// Flags of the raw table.
#[derive(Debug, Args)]
pub(crate) struct InputFormat {
    /// The format of the raw table if its file extension does not show it; csv for standard input.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
    #[command(flatten)]
    text: TextFlags,
}

/// A format of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Cells separated by commas
    Csv,
    /// Cells separated by tabs
    Tsv,
    /// One JSON object per line
    Ndjson,
}

impl From<FormatName> for FileFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Csv => FileFormat::CSV,
            FormatName::Tsv => FileFormat::TSV,
            FormatName::Ndjson => Self::Ndjson,
        }
    }
}

impl InputFormat {
    /// Whether no flag is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.format.is_none() && self.text.parameters().is_empty()
    }

    /// The raw table at a path, whose text is written as the flags say, or else as its dataset declares;
    /// `-` is standard input.
    ///
    /// # Errors
    /// For an unknown ending without `--format`, and for flags that contradict each other or the
    /// format.
    pub(crate) fn table(
        &self,
        path: &Path,
        declared: &TextParameters,
    ) -> Result<TableFile, Failure> {
        let file = TableFile::input(path, self.format)?;
        file.written_as(&self.text.parameters(), declared)
    }
}

/// The share of a file that has been read, by it or by one that was cloned from it, from 0 to 1; 0 if the
/// file has no size, such as a pipe.
fn share_read(mut file: &File) -> f64 {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    match file.stream_position() {
        Ok(read) if bytes > 0 => (read as f64 / bytes as f64).min(1.0),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;

    use super::{FileCompression, FileFormat, TableFile, share_read};

    #[test]
    fn the_file_extension_gives_the_format() {
        for (name, format, compression) in [
            ("a.csv", FileFormat::CSV, FileCompression::None),
            ("a.b.CSV.gz", FileFormat::CSV, FileCompression::Gzip),
            ("a.csv.zst", FileFormat::CSV, FileCompression::Zstd),
            ("a.tsv", FileFormat::TSV, FileCompression::None),
            ("a.tsv.gz", FileFormat::TSV, FileCompression::Gzip),
            ("a.ndjson", FileFormat::Ndjson, FileCompression::None),
            ("a.ndjson.gz", FileFormat::Ndjson, FileCompression::Gzip),
            ("a.parquet", FileFormat::Parquet, FileCompression::None),
        ] {
            let file = TableFile::of(Path::new(name)).unwrap();
            assert_eq!(
                (file.format, file.compression),
                (format, compression),
                "{name}"
            );
        }
        for name in ["a", "csv", "a.gz", "a.parquet.gz", "a.xlsx", ""] {
            assert!(TableFile::of(Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn the_share_grows_while_the_file_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1234").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let position = file.try_clone().unwrap();
        assert_eq!(share_read(&position), 0.0);
        file.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(share_read(&position), 0.75);
    }
}
