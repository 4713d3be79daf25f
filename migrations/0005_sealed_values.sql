-- What quotes raw rows is sealed, and digests of bodies are keyed. The columns of before hold rows of
-- an earlier version until the start of the service has sealed them (src/store/sealing_of_old_rows.rs).

-- A step's label, children and split points can be raw values.
ALTER TABLE job_steps ALTER COLUMN item DROP NOT NULL;
ALTER TABLE job_steps ADD COLUMN sealed_item bytea;
ALTER TABLE job_steps ADD CHECK (num_nonnulls(item, sealed_item) = 1);

-- `definition` has neither the sensitive values nor the pre-generalized values that the job lists;
-- `sealed_definition` has all of it, null where the job lists none.
ALTER TABLE jobs ADD COLUMN sealed_definition bytea;
-- What the holder should know about the rows: `{code, detail, pointer}`, without values.
ALTER TABLE jobs ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]';

-- The SHA-256 of the body is sealed; `body_digest` is its HMAC under a key of the dataset.
ALTER TABLE submissions ALTER COLUMN sha256 DROP NOT NULL;
ALTER TABLE submissions ADD COLUMN sealed_sha256 bytea;
ALTER TABLE submissions ADD COLUMN body_digest bytea;
ALTER TABLE submissions ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]';
CREATE INDEX submissions_body_digest ON submissions (dataset_id, body_digest);

-- Null for a dataset of an earlier version, until the start of the service has computed them.
ALTER TABLE datasets ADD COLUMN warnings jsonb;

-- `fingerprint` is the HMAC of the body's SHA-256 under a key of the service.
ALTER TABLE idempotent_answers DROP CONSTRAINT idempotent_answers_check;
ALTER TABLE idempotent_answers ADD COLUMN fingerprint bytea;
ALTER TABLE idempotent_answers ADD COLUMN sealed_body bytea;
ALTER TABLE idempotent_answers ADD CHECK (
    num_nulls(status, headers) IN (0, 2)
    AND num_nulls(body_sha256, body) IN (0, 2)
    AND num_nulls(fingerprint, sealed_body) IN (0, 2)
    AND num_nonnulls(status, body, sealed_body) IN (0, 2));

-- Null for a release of an earlier version.
ALTER TABLE releases ADD COLUMN suppression_for text
    CHECK (suppression_for IN ('size', 'size_and_confidence'));
ALTER TABLE releases ADD COLUMN missing_sensitive text
    CHECK (missing_sensitive IN ('excluded', 'counted'));
ALTER TABLE releases ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]';
