//! A table in a file. The file extension gives the format.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use pais::problem::{Code, Problem};
use pais_anonymize::{Count, Observer, Phase, Unobserved};
use pais_core::read::{ReadError, ReadFailure, ReadLimits, csv, ndjson, parquet, reimport};
use pais_core::schema::Schema;
use pais_core::table::chunk::Assembler;
use pais_core::table::{ReleasedTable, Table};

use super::counted::CountedFile;
use super::documents::in_file;
use super::failure::Failure;

/// The accepted file extensions, for error messages.
const EXTENSIONS: &str = ".csv, .ndjson, either of them with .gz or .zst, or .parquet";

/// Compression level for zstd: the default of the `zstd` program.
const ZSTD_LEVEL: i32 = 3;

/// Share of the reading phase that parsing takes; the rest is the engine's encoding.
const PARSING_SHARE: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Csv,
    Ndjson,
    Parquet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileCompression {
    None,
    Gzip,
    Zstd,
}

/// A table in a file.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    format: FileFormat,
    compression: FileCompression,
}

impl TableFile {
    /// The table file at a path, which need not exist yet.
    ///
    /// # Errors
    /// If the file extension is not one of the accepted ones.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let (stem, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(stem), _) => (stem, FileCompression::Gzip),
            (_, Some(stem)) => (stem, FileCompression::Zstd),
            _ => (&*name, FileCompression::None),
        };
        let format = match stem.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv") => FileFormat::Csv,
            Some("ndjson") => FileFormat::Ndjson,
            Some("parquet") if compression == FileCompression::None => FileFormat::Parquet,
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: unknown file extension; expected {EXTENSIONS}",
                    path.display()
                )));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            format,
            compression,
        })
    }

    /// Reads a raw table.
    ///
    /// # Errors
    /// If the file cannot be read, or its rows do not match the schema.
    pub(crate) fn read(&self, schema: &Schema) -> Result<Table, Failure> {
        self.read_observed(schema, &Unobserved::default())
    }

    /// Like [`Self::read`], and reports the rows read to `observer`. For a Parquet file the share
    /// of the file is not reported, because it is not read from start to end.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_observed(
        &self,
        schema: &Schema,
        observer: &dyn Observer,
    ) -> Result<Table, Failure> {
        let mut assembler = Assembler::default();
        let file = CountedFile::new(self.file()?);
        let share = file.share();
        let mut rows = 0;
        let chunk = |chunk: Table| {
            rows += chunk.rows as u64;
            observer.counted(Count::RowsRead(rows));
            observer.progress(Phase::Reading, PARSING_SHARE * share.now());
            assembler.push(chunk)
        };
        // The whole file may be of any size, because the memory is the user's own.
        let limits = ReadLimits::default();
        let read = match self.format {
            FileFormat::Csv => csv::read(schema, self.decompressed(file)?, limits, chunk),
            FileFormat::Ndjson => ndjson::read(schema, self.decompressed(file)?, limits, chunk),
            FileFormat::Parquet => parquet::read(schema, self.file()?, limits, chunk),
        };
        read.map_err(|failure| self.failure(failure))?;
        Ok(assembler.finish())
    }

    /// Reads a finished table, which need not come from pais.
    ///
    /// # Errors
    /// If the file cannot be read, or a value is not a generalization under the schema.
    pub(crate) fn read_finished(&self, schema: &Schema) -> Result<ReleasedTable, Failure> {
        let read_by = reimport::columns(schema, &self.names()?);
        let table = self.read(&read_by)?;
        let first_line = match self.format {
            FileFormat::Csv => 2,
            FileFormat::Ndjson | FileFormat::Parquet => 1,
        };
        let released = reimport::released(schema, &read_by, table, first_line);
        released.map_err(|error| self.refused(error))
    }

    /// The names of a table's columns, in order.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        match self.format {
            FileFormat::Csv => csv::names(self.decompressed(self.file()?)?)
                .map_err(|failure| self.failure(failure)),
            FileFormat::Ndjson => ndjson::names(self.decompressed(self.file()?)?)
                .map_err(|failure| self.failure(failure)),
            FileFormat::Parquet => parquet::names(&self.file()?).map_err(|it| self.refused(it)),
        }
    }

    /// Writes a released table.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, table: &ReleasedTable) -> Result<(), Failure> {
        self.try_write(table)
            .map_err(|error| Failure::file(&self.path, &error))
    }

    fn try_write(&self, table: &ReleasedTable) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(&self.path)?);
        match self.compression {
            FileCompression::None if self.format == FileFormat::Parquet => {
                table.write_parquet(&mut out)?;
            }
            FileCompression::None => self.write_text(table, &mut out)?,
            FileCompression::Gzip => {
                let level = flate2::Compression::default();
                let mut packed = flate2::write::GzEncoder::new(&mut out, level);
                self.write_text(table, &mut packed)?;
                packed.finish()?;
            }
            FileCompression::Zstd => {
                let mut packed = zstd::Encoder::new(&mut out, ZSTD_LEVEL)?;
                self.write_text(table, &mut packed)?;
                packed.finish()?;
            }
        }
        out.flush()
    }

    fn write_text(&self, table: &ReleasedTable, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            FileFormat::Ndjson => table.write_ndjson(out),
            FileFormat::Csv | FileFormat::Parquet => table.write_csv(out),
        }
    }

    fn file(&self) -> Result<File, Failure> {
        File::open(&self.path).map_err(|error| Failure::file(&self.path, &error))
    }

    fn decompressed(&self, file: impl Read + 'static) -> Result<Box<dyn Read>, Failure> {
        Ok(match self.compression {
            FileCompression::None => Box::new(file),
            FileCompression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            FileCompression::Zstd => Box::new(
                zstd::Decoder::new(file).map_err(|error| Failure::file(&self.path, &error))?,
            ),
        })
    }

    fn failure<E: std::fmt::Display>(&self, failure: ReadFailure<E>) -> Failure {
        match failure {
            ReadFailure::Refused(error) => self.refused(error),
            ReadFailure::Source(error) => Failure::file(&self.path, &error),
            ReadFailure::Sink(error) => Problem::new(Code::Internal, error.to_string()).into(),
        }
    }

    fn refused(&self, error: ReadError) -> Failure {
        in_file(&self.path, error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FileCompression, FileFormat, TableFile};

    #[test]
    fn the_file_extension_gives_the_format() {
        for (name, format, compression) in [
            ("a.csv", FileFormat::Csv, FileCompression::None),
            ("a.b.CSV.gz", FileFormat::Csv, FileCompression::Gzip),
            ("a.csv.zst", FileFormat::Csv, FileCompression::Zstd),
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
}
