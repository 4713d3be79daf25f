//! Encryption at rest: AES-256-GCM with the data key of the dataset for everything that quotes its
//! rows.

use pais_seal::{Cipher, DigestKey, KEY_BYTES, SealError, SecretKey, random_key};
use zeroize::Zeroizing;

use crate::ids::{JobId, PublicationId, ReleaseId};
use pais_core::definition::{DatasetId, SubmissionId};

/// Bytes of the keyed hash of a subject: enough to make equal hashes of two persons of a dataset practically
/// impossible.
const SUBJECT_BYTES: usize = 16;

/// The data key of a dataset, and the keys derived from it.
pub struct DataKey {
    cipher: Cipher,
    row_order: DigestKey,
    subjects: DigestKey,
    row_digests: DigestKey,
    dataset: DatasetId,
}

/// The kind and place of sealed data. Data can be opened only for the kind and place it was sealed for.
#[derive(Clone, Copy, Debug)]
pub enum SealedItem {
    /// A chunk of rows of a submission.
    Chunk {
        /// The submission.
        submission: SubmissionId,
        /// Index of the chunk, from 0.
        index: u32,
    },
    /// The key of a submission.
    SubmissionKey(SubmissionId),
    /// The SHA-256 of the body of a submission.
    BodySha256(SubmissionId),
    /// The definition of a job, with the values that it lists.
    Definition(JobId),
    /// The definition of the job of a publication.
    Publication(PublicationId),
    /// The numbers of the rows that a step of a run suppressed.
    SuppressedRows(StepPlace),
    /// A step of a run as its holder sees it.
    Step(StepPlace),
    /// The shares of raw values and labels in the columns of a release.
    Distributions(ReleaseId),
    /// A part of the raw rows of a release's rows.
    SourceRows {
        /// The release.
        release: ReleaseId,
        /// Index of the part, from 0.
        index: u32,
    },
}

/// A step of a run of a job.
#[derive(Clone, Copy, Debug)]
pub struct StepPlace {
    /// The job.
    pub job: JobId,
    /// Number of the run, from 0.
    pub run: u32,
    /// Number of the step, from 0.
    pub step: u32,
}

impl SealedItem {
    /// The associated data that authenticates what the data is. Forms of equal length begin with
    /// different ids, so no two items have equal associated data.
    fn associated(self, dataset: DatasetId) -> Vec<u8> {
        let (id, word, numbers) = match self {
            Self::Chunk { submission, index } => (submission.0, "", vec![index]),
            Self::SubmissionKey(submission) => (submission.0, "submission key", vec![]),
            Self::BodySha256(submission) => (submission.0, "sha256", vec![]),
            Self::Definition(job) => (job.0, "definition", vec![]),
            Self::Publication(publication) => (publication.0, "publication", vec![]),
            Self::SuppressedRows(StepPlace { job, run, step }) => {
                (job.0, "suppressed rows", vec![run, step])
            }
            Self::Step(StepPlace { job, run, step }) => (job.0, "step", vec![run, step]),
            Self::Distributions(release) => (release.0, "distributions", vec![]),
            Self::SourceRows { release, index } => (release.0, "source rows", vec![index]),
        };
        let mut data = [dataset.0.as_bytes(), id.as_bytes(), word.as_bytes()].concat();
        data.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        data
    }
}

/// The key of the rows of a submission.
#[derive(Clone)]
pub struct SubmissionKey {
    cipher: Cipher,
    dataset: DatasetId,
}

impl SubmissionKey {
    fn new(key: &SecretKey, dataset: DatasetId) -> Self {
        Self {
            cipher: Cipher::new(key),
            dataset,
        }
    }

    /// Seals rows for their place.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn seal(&self, place: SealedItem, data: &[u8]) -> Result<Vec<u8>, SealError> {
        self.cipher.seal(data, &place.associated(self.dataset))
    }

    /// Opens rows.
    ///
    /// # Errors
    /// When they were sealed for another place or with another key, or are damaged.
    pub fn open(&self, place: SealedItem, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.cipher.open(sealed, &place.associated(self.dataset))
    }
}

impl DataKey {
    pub(super) fn new(key: &SecretKey, dataset: DatasetId) -> Self {
        Self {
            cipher: Cipher::new(key),
            row_order: DigestKey::derive(key, "pais: order of released rows"),
            subjects: DigestKey::derive(key, "pais: subjects"),
            row_digests: DigestKey::derive(key, "pais: rows of submissions"),
            dataset,
        }
    }

    /// A new key for the rows of a submission, and the same sealed with this key.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn new_submission_key(
        &self,
        submission: SubmissionId,
    ) -> Result<(SubmissionKey, Vec<u8>), SealError> {
        let key = random_key()?;
        let sealed = self.seal(SealedItem::SubmissionKey(submission), &*key)?;
        Ok((SubmissionKey::new(&key, self.dataset), sealed))
    }

    /// The key of the rows of a submission.
    ///
    /// # Errors
    /// When it was sealed for another submission, or is damaged.
    pub fn open_submission_key(
        &self,
        submission: SubmissionId,
        sealed: &[u8],
    ) -> Result<SubmissionKey, SealError> {
        let opened = self.open(SealedItem::SubmissionKey(submission), sealed)?;
        let opened = Zeroizing::new(opened);
        let key: &[u8; KEY_BYTES] = opened
            .as_slice()
            .try_into()
            .map_err(|_| SealError::DoesNotOpen)?;
        Ok(SubmissionKey::new(&SecretKey::new(*key), self.dataset))
    }

    /// Seals data of the dataset for its place.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn seal(&self, place: SealedItem, data: &[u8]) -> Result<Vec<u8>, SealError> {
        self.cipher.seal(data, &place.associated(self.dataset))
    }

    /// Opens data of the dataset.
    ///
    /// # Errors
    /// When it was sealed for another place, or is damaged.
    pub fn open(&self, place: SealedItem, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.cipher.open(sealed, &place.associated(self.dataset))
    }

    /// The form in which a person of the dataset is stored: the first 128 bits of a keyed hash, in
    /// hexadecimal. A person has one form in all submissions of a dataset, and unrelated ones in
    /// two datasets.
    pub fn subject(&self, id: &str) -> String {
        hex::encode(&self.subjects.digest(&[id.as_bytes()])[..SUBJECT_BYTES])
    }

    /// The key of the hashes of cells that are added up for [`Self::rows_digest`].
    pub fn cells_key(&self) -> [u8; 32] {
        self.row_digests.digest(&[b"cells"])
    }

    /// The keyed digest of the rows of a submission, given by their sum and their number.
    pub fn rows_digest(&self, sum: u128, rows: u64) -> [u8; 32] {
        self.row_digests
            .digest(&[b"rows", &sum.to_be_bytes(), &rows.to_be_bytes()])
    }

    /// The key of the order of the dataset's released rows.
    pub fn order_key(&self) -> SecretKey {
        self.row_order.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::{SealedItem, StepPlace};
    use crate::db::key_ring::KeyRing;
    use crate::ids::JobId;
    use pais_core::definition::{DatasetId, SubmissionId};
    use pais_seal::SealError;
    use uuid::Uuid;

    #[test]
    fn data_opens_only_with_its_own_key_and_in_its_own_place() {
        let (dataset, submission, job) = (DatasetId::new(), SubmissionId::new(), JobId::new());
        let ring = KeyRing::new(&[7; 32]);
        let wrapped = ring.new_data_key(dataset).unwrap();
        let key = ring.open(dataset, &wrapped).unwrap();
        let chunk = |submission, index| SealedItem::Chunk { submission, index };
        let step = |run, step| StepPlace { job, run, step };
        let places = [
            chunk(submission, 3),
            chunk(submission, 4),
            chunk(SubmissionId::new(), 3),
            SealedItem::BodySha256(submission),
            SealedItem::Definition(job),
            SealedItem::SuppressedRows(step(0, 1)),
            SealedItem::SuppressedRows(step(1, 0)),
            SealedItem::SuppressedRows(step(1, 1)),
            SealedItem::Step(step(0, 1)),
            SealedItem::Step(step(1, 0)),
        ];
        for (number, place) in places.into_iter().enumerate() {
            let sealed = key.seal(place, b"rows").unwrap();
            for (other, elsewhere) in places.into_iter().enumerate() {
                let opened = key.open(elsewhere, &sealed);
                match number == other {
                    true => assert_eq!(opened.unwrap(), b"rows"),
                    false => assert_eq!(opened, Err(SealError::DoesNotOpen)),
                }
            }
        }
        assert!(ring.open(DatasetId::new(), &wrapped).is_err());
        assert!(KeyRing::new(&[8; 32]).open(dataset, &wrapped).is_err());
    }

    #[test]
    fn a_digest_says_nothing_without_the_key() {
        let ring = KeyRing::new(&[7; 32]);
        let [one, two] = [DatasetId::new(), DatasetId::new()].map(|dataset| {
            let wrapped = ring.new_data_key(dataset).unwrap();
            ring.open(dataset, &wrapped).unwrap()
        });
        assert_ne!(one.order_key(), two.order_key());
        assert_eq!(one.subject("p1"), one.subject("p1"));
        assert_ne!(one.subject("p1"), one.subject("p2"));
        assert_ne!(one.subject("p1"), two.subject("p1"));
        assert_eq!(one.subject("p1").len(), 32);
        assert_ne!(one.cells_key(), two.cells_key());
        assert_eq!(one.rows_digest(1, 2), one.rows_digest(1, 2));
        assert_ne!(one.rows_digest(1, 2), one.rows_digest(1, 3));
        assert_ne!(one.rows_digest(1, 2), two.rows_digest(1, 2));
        let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
        assert_ne!(
            ring.fingerprint(first, &[1; 32]),
            ring.fingerprint(second, &[1; 32])
        );
        let sealed = ring.seal_answer(first, b"{}").unwrap();
        assert_eq!(ring.open_answer(first, &sealed).unwrap(), b"{}");
        assert!(ring.open_answer(second, &sealed).is_err());
        assert!(KeyRing::new(&[8; 32]).open_answer(first, &sealed).is_err());
    }
}
