//! An attempt at the job of an edition: loads its input, then decides on its own thread
//! which rows the edition contains and builds its release.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pais_anonymize::Observer;
use pais_core::codebook::views;
use pais_core::definition::{SubmissionId, Sweep};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_editions::{EarlierEdition, EditionError, EditionTask, connected, decide_edition};
use pais_verify::NOWHERE;
use serde_json::Value;

use crate::db::claims::Claim;
use crate::db::datasets::StoredDataset;
use crate::db::editions::{DecidedEdition, EditionPlan};
use crate::db::releases::{self, SourceRows};
use crate::db::seal::DataKey;
use crate::db::submissions::{self, SubmissionRows, SubmissionsSize, Which};
use crate::db::{Store, StoreError};
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::storage::Storage;

use super::attempt::{self, RunResults};
use super::composition_tables::{self, PartsError, StoredParts, UnknownRows};
use super::release_packing::{self, PackedRelease, ReleaseOrigin};
use super::{WorkError, on_thread};

/// The data that an edition is decided on, in addition to its raw rows.
pub(crate) struct EditionInput {
    plan: EditionPlan,
    /// The submissions that the job reads, in the order of the raw table.
    read: Vec<SubmissionRows>,
    /// Where the rows of the published editions come from.
    published: Vec<SourceRows>,
    /// The releases that recipients know.
    known: Vec<StoredParts>,
}

/// Bytes of the number of a row as stored, renumbered, and in sets of rows, which grow by doubling.
const SOURCE_BYTES: u64 = 40;

/// Bytes of the numbers and persons of one raw row, in lists and maps of the decision.
const PERSON_BYTES: u64 = 64;

/// Copies of the raw table: in canonical form, and of the rows that are not held back; if a new base is tried,
/// the encoded and the released table of the edition that continues the old one; if persons have several rows,
/// their labels by row, the released tables of the best step and of a tried step, and the latter as a recipient
/// knows it.
const COPIES: u64 = 8;

/// Bytes of the copies of the raw table, and of its persons and the combinations of their rows.
fn copies(schema: &Schema, size: SubmissionsSize) -> u64 {
    let persons = size.rows.saturating_mul(PERSON_BYTES);
    let copy = composition_tables::view_bytes(schema, size);
    let combinations = composition_tables::combination_bytes(schema, size);
    copy.saturating_mul(COPIES)
        .saturating_add(persons)
        .saturating_add(combinations)
}

/// The job of an edition, and the rows that it reads.
#[derive(Clone, Copy)]
pub(crate) struct EditionJob<'a> {
    /// Its definition.
    pub(crate) definition: &'a Value,
    /// The dataset.
    pub(crate) dataset: &'a StoredDataset,
    /// The raw rows.
    pub(crate) table: &'a Table,
    /// The data key of the dataset.
    pub(crate) key: &'a DataKey,
}

impl EditionInput {
    /// Loads it, without the rows of the releases. Of the releases that recipients know, it has those that
    /// have to be decided. A release with rows that came after the job was queued cannot be decided by it,
    /// and so is not among those that the plan says are decided: the edition is then queued again.
    ///
    /// # Errors
    /// `composition_risk` if rows that are needed were deleted, or are only in the files of a release;
    /// `submission_replaced` if no row is left to take; when the database fails.
    pub(crate) async fn load(
        store: &Store,
        key: &DataKey,
        dataset: &StoredDataset,
        claim: &Claim,
        plan: EditionPlan,
    ) -> Result<Self, WorkError> {
        if plan.submissions.is_empty() {
            let detail = "others have taken the place of all submissions of the edition; their rows \
                          come with the next one";
            return Err(Problem::new(Code::SubmissionReplaced, detail).into());
        }
        let is_read: BTreeSet<SubmissionId> = claim.submissions.iter().copied().collect();
        let present = submissions::rows_by_submission(store, dataset.id, Which::Stored).await?;
        let mut read = present.clone();
        read.retain(|it| is_read.contains(&it.id));
        let damaged = || StoreError::Damaged("an edition");
        let mut published = Vec::with_capacity(plan.published.len());
        for edition in &plan.published {
            let sources = releases::source_rows(store, key, edition.release_id).await?;
            published.push(sources.ok_or_else(damaged)?);
        }
        let ids: BTreeSet<ReleaseId> = plan.known.values().flatten().copied().collect();
        let known = composition_tables::load(store, key, claim.organization, ids);
        let known = known.await.map_err(|error| match error {
            PartsError::Unknown(UnknownRows::InFiles(release)) => in_files(release).into(),
            PartsError::Unknown(UnknownRows::Deleted) => damaged().into(),
            PartsError::Store(error) => WorkError::Store(error),
        })?;
        let mut input = Self {
            plan,
            read,
            published,
            known,
        };
        let schema = dataset.schema.clone();
        on_thread(move || {
            input.choose_known(&schema, &present)?;
            Ok(input)
        })
        .await
    }

    /// Bytes that [`Self::load`] needs: where the rows of releases come from, in lists and sets.
    pub(crate) fn source_bytes(plan: &EditionPlan, raw_rows: u64) -> u64 {
        let rows = plan.released_rows.saturating_add(raw_rows);
        rows.saturating_mul(SOURCE_BYTES)
    }

    /// Keeps the known releases that have to be decided, and takes those from the plan that this job
    /// cannot decide.
    fn choose_known(
        &mut self,
        schema: &Schema,
        present: &[SubmissionRows],
    ) -> Result<(), WorkError> {
        let of_releases = self.known.iter().flat_map(|part| &part.sources.submissions);
        let all = self.read.iter().chain(of_releases);
        let all: BTreeMap<SubmissionId, SubmissionRows> = all.map(|it| (it.id, *it)).collect();
        let starts = composition_tables::starts(&all.into_values().collect::<Vec<_>>());
        let rows = self.known.iter();
        let rows = rows.map(|part| composition_tables::source_rows(&part.sources, &starts));
        let rows: Vec<Vec<u32>> = rows.collect();
        let candidates = self.candidates(&starts);
        let (read, present): (HashSet<_>, HashSet<_>) =
            (self.read.iter().collect(), present.iter().collect());
        let mut chosen = BTreeSet::new();
        for history in self.plan.known.values_mut() {
            let places: Vec<usize> = (0..self.known.len())
                .filter(|&place| history.contains(&self.known[place].release.id))
                .collect();
            // A person can have rows in any release; without a subject column, each row is a person.
            let places = if schema.subject().is_some() {
                places
            } else {
                let candidates = candidates.iter().copied();
                connected(&places, candidates, |place| rows[place].iter().copied())
            };
            for place in places {
                let part = &self.known[place];
                let used = part.used_submissions();
                if !used.iter().all(|it| present.contains(it)) {
                    return Err(deleted_rows(part.release.id).into());
                }
                if used.iter().all(|it| read.contains(it)) {
                    chosen.insert(part.release.id);
                } else {
                    history.retain(|release| *release != part.release.id);
                }
            }
        }
        self.known.retain(|part| chosen.contains(&part.release.id));
        Ok(())
    }

    /// Bytes that the decision needs in addition to the run.
    pub(crate) fn bytes(&self, schema: &Schema, size: SubmissionsSize) -> u64 {
        let views = self.views(schema).len().saturating_sub(1) as u64;
        let views = composition_tables::view_bytes(schema, size).saturating_mul(views);
        let known = self.known.iter().map(|part| part.bytes(size.rows));
        let published = self.published.iter();
        let published = published.map(|sources| sources.rows.len() as u64 * SOURCE_BYTES);
        let all = known.chain(published).chain([copies(schema, size), views]);
        all.fold(0, u64::saturating_add)
    }

    /// The schemas by which the edition and the releases that recipients know show values.
    fn views(&self, schema: &Schema) -> Vec<Schema> {
        let codebooks = self.known.iter().map(|part| &part.codebook);
        views(schema, Some(schema), codebooks)
    }

    /// Loads the rows of the releases.
    pub(crate) async fn load_rows(&mut self, store: &Store) -> Result<(), StoreError> {
        for part in &mut self.known {
            part.load_chunks(store).await?;
        }
        Ok(())
    }

    /// The name of the release.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.plan.name, self.plan.number)
    }

    /// The submissions whose rows the edition takes.
    fn taken(&self) -> impl Iterator<Item = &SubmissionRows> {
        let read = self.read.iter();
        read.filter(|it| self.plan.submissions.contains(&it.id))
    }

    /// The rows of the edition's submissions that no published edition has, ascending.
    fn candidates(&self, starts: &BTreeMap<SubmissionId, u64>) -> Vec<u32> {
        let released = self.published.iter();
        let released =
            released.flat_map(|sources| composition_tables::source_rows(sources, starts));
        let released: HashSet<u32> = released.collect();
        let rows = self.taken().flat_map(|it| {
            let start = starts.get(&it.id).copied().unwrap_or_default();
            (start..start + it.rows).map(|row| u32::try_from(row).unwrap_or(NOWHERE))
        });
        rows.filter(|row| !released.contains(row)).collect()
    }

    /// Decides the edition and packs its release.
    ///
    /// # Errors
    /// `not_anonymizable` if nothing can be published now, `composition_risk`, and those of a run.
    pub(crate) fn run(
        mut self,
        job: &EditionJob<'_>,
        mut origin: ReleaseOrigin,
        storage: &Storage,
        observer: &dyn Observer,
    ) -> Result<RunResults, WorkError> {
        let EditionJob {
            definition,
            dataset,
            table,
            key,
        } = *job;
        let starts = composition_tables::starts(&self.read);
        let views = self.views(&dataset.schema);
        let parts = std::mem::take(&mut self.known);
        let ids: Vec<ReleaseId> = parts.iter().map(|part| part.release.id).collect();
        let known = composition_tables::known(parts, &starts)?;
        let place = |release: &ReleaseId| ids.iter().position(|id| id == release);
        let histories = self.plan.known.values();
        let histories = histories.map(|releases| releases.iter().filter_map(place).collect());
        let histories: Vec<Vec<usize>> = histories.collect();
        let definition = attempt::stored_job(definition)?;
        let sweep = Sweep::new(&definition)?;
        let definition = attempt::combination(&definition, &sweep, 0)?;
        let earlier = std::mem::take(&mut self.plan.published).into_iter();
        let earlier = earlier.map(|it| EarlierEdition {
            cut: it.cut,
            rows: it.rows,
            is_base: it.is_base,
        });
        let earlier: Vec<EarlierEdition> = earlier.collect();
        let candidates = self.candidates(&starts);
        let task = EditionTask {
            schema: dataset.schema.clone(),
            job: definition.parse()?,
            earlier: &earlier,
            order_key: Some(key.order_key()),
            raw: table,
            views: &views,
            candidates: candidates.clone(),
            known: &known,
            histories: &histories,
        };
        let edition = decide_edition(task, observer).map_err(|error| self.problem(error))?;
        let released: HashSet<u32> = edition.source_rows().into_iter().collect();
        let (run, found, is_base) = (edition.run, edition.found, edition.is_base);
        let mut warnings = run.warnings();
        let mut release =
            PackedRelease::of_verified(&run, &found, edition.verified, storage, observer)?;
        let rendered = release.take_rendered();
        warnings.extend(attempt::of_job(release.warnings()));
        drop(run);
        let steps = attempt::seal(key, origin.job, 0, found.into_steps(), observer)?;
        origin.rows = Some(edition.rows);
        origin.submissions = self.taken().map(|it| it.id).collect();
        let release = release_packing::pack(release, origin, &definition, key)?;
        let waiting: Vec<u32> = candidates
            .into_iter()
            .filter(|row| !released.contains(row))
            .collect();
        Ok(RunResults {
            steps,
            sweep: Vec::new(),
            release: Some(release),
            rendered,
            edition: Some(DecidedEdition {
                held_back: self.by_submission(&waiting, &starts),
                decided_with: self.plan.known,
                is_base,
            }),
            warnings,
        })
    }

    /// The number of these rows, which are ascending, in each submission of the edition.
    fn by_submission(
        &self,
        rows: &[u32],
        starts: &BTreeMap<SubmissionId, u64>,
    ) -> BTreeMap<SubmissionId, u64> {
        let counted = self.taken().map(|it| {
            let start = starts.get(&it.id).copied().unwrap_or_default();
            let below = |end: u64| rows.partition_point(|&row| u64::from(row) < end) as u64;
            (it.id, below(start + it.rows) - below(start))
        });
        counted.collect()
    }

    fn problem(&self, error: EditionError) -> WorkError {
        let detail = match error {
            EditionError::Run(error) => return error.into(),
            EditionError::NothingLeft => {
                return Problem::new(Code::NotAnonymizable, error.to_string()).into();
            }
            EditionError::Broken { history } => {
                let recipient = self.plan.known.keys().nth(history);
                let mut recipients = self.plan.recipients.iter();
                let recipient = recipients.find(|it| Some(&it.recipient.id) == recipient);
                let name = recipient.map_or("a recipient", |it| &it.recipient.name);
                format!("{error}; the recipient is `{name}`")
            }
            EditionError::Undecided(_) => error.to_string(),
        };
        Problem::new(Code::CompositionRisk, detail).into()
    }
}

fn in_files(release: ReleaseId) -> Problem {
    let detail = format!(
        "{}; so it cannot be decided what it says together with a new edition; take the recipients who have \
         it from the publication",
        UnknownRows::InFiles(release)
    );
    Problem::new(Code::CompositionRisk, detail)
}

fn deleted_rows(release: ReleaseId) -> Problem {
    let detail = format!(
        "rows of release {release} were deleted, so that it cannot be decided what it says together with a \
         new edition; take the recipients who have it from the publication, or send further rows to a new \
         dataset"
    );
    Problem::new(Code::CompositionRisk, detail)
}

impl StoredParts {
    /// The submissions that its rows come from.
    fn used_submissions(&self) -> Vec<SubmissionRows> {
        let sources = &self.sources;
        let mut end = 0;
        let ends = sources.submissions.iter().map(|submission| {
            end += submission.rows;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let place = |row: &u32| ends.partition_point(|&end| end <= u64::from(*row));
        let places: BTreeSet<usize> = sources.rows.iter().map(place).collect();
        let used = places.into_iter();
        let used = used.filter_map(|place| sources.submissions.get(place));
        used.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use pais_core::schema::Schema;
    use serde_json::json;

    use super::{SubmissionsSize, copies};
    use crate::engine::table_memory::TableLimits;

    #[test]
    fn copies_of_all_columns_count_for_the_memory_of_a_job() {
        let column = |number| json!({ "name": format!("c{number}"), "role": "quasi_identifier" });
        let columns: Vec<_> = (0..50).map(column).collect();
        let definition = json!({ "name": "t", "columns": columns });
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let size = SubmissionsSize {
            submissions: 1,
            rows: 1_000,
            text_bytes: 1_000_000,
            bytes: 1_000_000,
        };
        let copies = copies(&schema, size);
        assert!(copies >= 4 * (1_000 * 50 * 4 + 1_000_000));
        let mut limits = TableLimits {
            job_bytes: u64::MAX,
            process_bytes: u64::MAX,
        };
        let alone = limits.needed(&schema, &[], size, 0).unwrap();
        limits.job_bytes = alone + copies;
        let both = limits.needed(&schema, &[], size, copies);
        assert_eq!(both.unwrap(), alone + copies);
        limits.job_bytes -= 1;
        limits.needed(&schema, &[], size, copies).unwrap_err();
    }
}
