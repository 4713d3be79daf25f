//! The written files, read back and verified: their rows meet the model, and are the image of all raw rows
//! under one cut.

use pais_anonymize::{DistinctValues, Observer, Phase, RunError};
use pais_core::definition::{Job, JobError, JobErrorKind};
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::{NULL_CODE, ReadError, Table};
use pais_io::read::{ReadFailure, ReadLimits, parquet};
use pais_verify::{DistinctRelease, ReleaseError, ReleaseVerification, StreamedVerification};

use crate::codes::CodeFile;
use crate::error::ScaleError;
use crate::release::{Manifest, ReleaseTarget};

/// By number of a value, the code of its text; `None` where these are the same.
type NumberCodes = Option<Vec<u32>>;

/// What written files are verified against.
pub(crate) struct RawRows<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) job: &'a Job,
    /// The distinct values.
    pub(crate) values: &'a DistinctValues,
    /// The rows as numbers of values.
    pub(crate) codes: &'a CodeFile,
}

impl RawRows<'_> {
    /// Verifies the written files of a release, which are read back from their target. Distinct rows take at
    /// most `memory` bytes.
    ///
    /// # Errors
    /// [`ScaleError::NotVerified`] for files that must not be released; those of the target.
    pub(crate) fn verify<T: ReleaseTarget>(
        &self,
        target: &mut T,
        manifest: &Manifest,
        memory: u64,
        observer: &dyn Observer,
    ) -> Result<(ReleaseVerification, DistinctRelease), T::Error> {
        observer.progress(Phase::Verifying, 0.0);
        let cancellation = observer.cancellation();
        let mut verification =
            StreamedVerification::new(self.schema, self.job, memory).map_err(refused)?;
        verification.can_compare().map_err(refused)?;
        let with_roles = self.schema.with_roles(&self.job.roles);
        let with_roles = with_roles.map_err(ScaleError::from)?;
        for listed in &manifest.files {
            let file = target.open(listed)?;
            let names = parquet::names(&file).map_err(not_readable)?;
            let read_by = reimport::columns(&with_roles, &names);
            let chunk = |chunk: Table| {
                let rows = reimport::released(&with_roles, &read_by, chunk, 1);
                let rows = rows.map_err(not_readable)?;
                verification.add(&rows, cancellation).map_err(refused)?;
                let share = verification.rows() as f64 / manifest.rows.max(1) as f64;
                observer.progress(Phase::Verifying, 0.6 * share);
                Ok::<_, ScaleError>(())
            };
            let read = parquet::read(&read_by, file, ReadLimits::default(), chunk);
            read.map_err(|failure| match failure {
                ReadFailure::Refused(error) => not_readable(error),
                ReadFailure::Source(error) => ScaleError::NotVerified(error.to_string()),
                ReadFailure::Sink(error) => error,
            })?;
        }
        Ok(self.compare(verification, manifest, observer)?)
    }

    /// Compares the contents of the files with the raw rows, and decides.
    fn compare(
        &self,
        verification: StreamedVerification,
        manifest: &Manifest,
        observer: &dyn Observer,
    ) -> Result<(ReleaseVerification, DistinctRelease), ScaleError> {
        let cancellation = observer.cancellation();
        if verification.rows() != manifest.rows {
            let detail = "the numbers of rows in the files do not match the manifest";
            return Err(ScaleError::NotVerified(detail.to_owned()));
        }
        let mut comparison = verification.compare().map_err(refused)?;
        let (texts, numbers) = self.texts();
        let texts = comparison.texts(texts).map_err(refused)?;
        for block in 0..self.codes.blocks() {
            let codes = self
                .codes
                .block(block)
                .map_err(ScaleError::Spool)?
                .columns();
            let codes: Vec<Vec<u32>> = codes
                .into_iter()
                .zip(&numbers)
                .map(|(codes, numbers)| match numbers {
                    None => codes,
                    Some(numbers) => codes.iter().map(|&code| numbers[code as usize]).collect(),
                })
                .collect();
            let columns: Vec<&[u32]> = codes.iter().map(Vec::as_slice).collect();
            comparison
                .add_codes(&texts, &columns, cancellation)
                .map_err(refused)?;
            let share = block as f64 / self.codes.blocks() as f64;
            observer.progress(Phase::Verifying, 0.6 + 0.3 * share);
        }
        let mut distinct = None;
        let take = |rows| distinct = Some(rows);
        let found = comparison
            .finish_with(cancellation, take)
            .map_err(refused)?;
        let (found, distinct) = found.zip(distinct).ok_or_else(|| {
            let detail = "the rows of the files are not the raw rows under one cut";
            ScaleError::NotVerified(detail.to_owned())
        })?;
        if !found.holds() {
            let detail = "the files do not meet the privacy model";
            return Err(ScaleError::NotVerified(detail.to_owned()));
        }
        observer.progress(Phase::Verifying, 1.0);
        Ok((found, distinct))
    }

    /// By stored column, the texts of its values without null, and the code of each value number among them.
    fn texts(&self) -> (Vec<Vec<Box<str>>>, Vec<NumberCodes>) {
        let columns = self.values.columns.iter().map(|column| {
            let texts: Vec<Box<str>> = column.values.iter().flatten().cloned().collect();
            if texts.len() == column.values.len() {
                return (texts, None);
            }
            let mut next = 0;
            let numbers = column.values.iter().map(|value| match value {
                None => NULL_CODE,
                Some(_) => {
                    next += 1;
                    next - 1
                }
            });
            let numbers = numbers.collect();
            (texts, Some(numbers))
        });
        columns.unzip()
    }
}

fn not_readable(error: ReadError) -> ScaleError {
    ScaleError::NotVerified(error.to_string())
}

fn refused(error: ReleaseError) -> ScaleError {
    match error {
        ReleaseError::Cancelled => RunError::Cancelled.into(),
        ReleaseError::Job(error) => error.into(),
        ReleaseError::TooManyDistinctRows { most } => {
            let detail = format!(
                "the distinct rows of the release take more than {} MiB; have `memory` raised, or \
                 release fewer columns unchanged",
                most >> 20
            );
            JobError::new(JobErrorKind::LimitExceeded, detail).into()
        }
        error => ScaleError::NotVerified(error.to_string()),
    }
}
