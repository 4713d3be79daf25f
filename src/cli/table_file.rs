//! A table in a file, whose format is told by its ending.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use pais::problem::{Code, Problem};
use pais_anonymize::{Count, Observer, Phase, Unobserved};
use pais_core::table::chunk::Assembler;
use pais_core::read::{ReadFailure, csv, ndjson, parquet, reimport};
use pais_core::table::{ReleasedTable, Table};
use pais_core::schema::Schema;

use super::counted::CountedFile;
use super::documents::in_file;
use super::failure::Failure;

/// What the endings are, for messages.
const ENDINGS: &str = ".csv, .ndjson, either of them with .gz or .zst, or .parquet";

/// zstd's level: the default of its own program.
const ZSTD_LEVEL: i32 = 3;

/// Fraction of reading that is parsing; the rest is the engine's encoding.
const PARSED: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Ndjson,
    Parquet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

/// A table in a file.
#[derive(Clone, Debug)]
pub struct TableFile {
    path: PathBuf,
    format: Format,
    packing: Packing,
}

impl TableFile {
    /// The file at a path; it need not be there yet.
    ///
    /// # Errors
    /// For an ending that tells no format.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let (stem, packing) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(stem), _) => (stem, Packing::Gzip),
            (_, Some(stem)) => (stem, Packing::Zstd),
            _ => (&*name, Packing::None),
        };
        let format = match stem.rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Format::Csv,
            Some("ndjson") => Format::Ndjson,
            Some("parquet") if packing == Packing::None => Format::Parquet,
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: the format is told by the ending, which is {ENDINGS}",
                    path.display()
                )));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            format,
            packing,
        })
    }

    /// Reads a raw table.
    ///
    /// # Errors
    /// For rows that do not fit the schema, and an unreadable file.
    pub fn read(&self, schema: &Schema) -> Result<Table, Failure> {
        self.read_observed(schema, &Unobserved)
    }

    /// As [`Self::read`], telling the rows read. A Parquet file, which is not read from its front
    /// to its end, does not tell its share.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_observed(
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
            observer.progress(Phase::Reading, PARSED * share.now());
            assembler.push(chunk)
        };
        let read = match self.format {
            Format::Csv => csv::read(schema, self.unpacked(file)?, chunk),
            Format::Ndjson => ndjson::read(schema, self.unpacked(file)?, chunk),
            // The user's own memory is the limit here.
            Format::Parquet => parquet::read(schema, self.file()?, u64::MAX, chunk),
        };
        read.map_err(|failure| self.failure(failure))?;
        Ok(assembler.finish())
    }

    /// Reads a finished table, whoever made it.
    ///
    /// # Errors
    /// For what is no generalization under the schema, and an unreadable file.
    pub fn read_finished(&self, schema: &Schema) -> Result<ReleasedTable, Failure> {
        let read_by = finished::columns(schema, &self.names()?);
        let table = self.read(&read_by)?;
        let first_line = match self.format {
            Format::Csv => 2,
            Format::Ndjson | Format::Parquet => 1,
        };
        let released = finished::released(schema, &read_by, table, first_line);
        released.map_err(|problem| self.refused(problem))
    }

    /// The names of a table's columns.
    ///
    /// # Errors
    /// For a file that cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        match self.format {
            Format::Csv => {
                csv::names(self.unpacked(self.file()?)?).map_err(|failure| self.failure(failure))
            }
            Format::Ndjson => {
                ndjson::names(self.unpacked(self.file()?)?).map_err(|failure| self.failure(failure))
            }
            Format::Parquet => parquet::names(&self.file()?).map_err(|it| self.refused(it)),
        }
    }

    /// Writes a released table.
    ///
    /// # Errors
    /// For a file that cannot be written.
    pub fn write(&self, table: &ReleasedTable) -> Result<(), Failure> {
        self.try_write(table)
            .map_err(|error| Failure::file(&self.path, &error))
    }

    fn try_write(&self, table: &ReleasedTable) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(&self.path)?);
        match self.packing {
            Packing::None if self.format == Format::Parquet => table.write_parquet(&mut out)?,
            Packing::None => self.write_text(table, &mut out)?,
            Packing::Gzip => {
                let level = flate2::Compression::default();
                let mut packed = flate2::write::GzEncoder::new(&mut out, level);
                self.write_text(table, &mut packed)?;
                packed.finish()?;
            }
            Packing::Zstd => {
                let mut packed = zstd::Encoder::new(&mut out, ZSTD_LEVEL)?;
                self.write_text(table, &mut packed)?;
                packed.finish()?;
            }
        }
        out.flush()
    }

    fn write_text(&self, table: &ReleasedTable, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Ndjson => table.write_ndjson(out),
            Format::Csv | Format::Parquet => table.write_csv(out),
        }
    }

    fn file(&self) -> Result<File, Failure> {
        File::open(&self.path).map_err(|error| Failure::file(&self.path, &error))
    }

    fn unpacked(&self, file: impl Read + 'static) -> Result<Box<dyn Read>, Failure> {
        Ok(match self.packing {
            Packing::None => Box::new(file),
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Packing::Zstd => Box::new(
                zstd::Decoder::new(file).map_err(|error| Failure::file(&self.path, &error))?,
            ),
        })
    }

    fn failure<E: std::fmt::Display>(&self, failure: ReadFailure<E>) -> Failure {
        match failure {
            ReadFailure::Refused(problem) => self.refused(problem),
            ReadFailure::Source(error) => Failure::file(&self.path, &error),
            ReadFailure::Sink(error) => Problem::new(Code::Internal, error.to_string()).into(),
        }
    }

    fn refused(&self, problem: Problem) -> Failure {
        in_file(&self.path, problem).into()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Format, Packing, TableFile};

    #[test]
    fn endings_tell_the_format() {
        for (name, format, packing) in [
            ("a.csv", Format::Csv, Packing::None),
            ("a.b.CSV.gz", Format::Csv, Packing::Gzip),
            ("a.csv.zst", Format::Csv, Packing::Zstd),
            ("a.ndjson", Format::Ndjson, Packing::None),
            ("a.ndjson.gz", Format::Ndjson, Packing::Gzip),
            ("a.parquet", Format::Parquet, Packing::None),
        ] {
            let file = TableFile::of(Path::new(name)).unwrap();
            assert_eq!((file.format, file.packing), (format, packing), "{name}");
        }
        for name in ["a", "csv", "a.gz", "a.parquet.gz", "a.xlsx", ""] {
            assert!(TableFile::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
