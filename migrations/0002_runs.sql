-- What runs work on and leave behind: submissions, jobs, releases, grants.

CREATE TABLE submissions (
    id         uuid PRIMARY KEY,
    dataset_id uuid NOT NULL REFERENCES datasets,
    rows       bigint NOT NULL,
    bytes      bigint NOT NULL,
    sha256     bytea NOT NULL,
    media_type text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX submissions_dataset ON submissions (dataset_id, id);

-- Columnar chunks of some 64 Ki rows, sealed with the dataset's data key.
CREATE TABLE submission_chunks (
    submission_id uuid NOT NULL REFERENCES submissions ON DELETE CASCADE,
    index         integer NOT NULL,
    rows          integer NOT NULL,
    sealed        bytea NOT NULL,
    PRIMARY KEY (submission_id, index)
);
-- Chunks are compressed already.
ALTER TABLE submission_chunks ALTER COLUMN sealed SET STORAGE EXTERNAL;

CREATE TABLE jobs (
    id               uuid PRIMARY KEY,
    organization_id  uuid NOT NULL REFERENCES organizations,
    dataset_id       uuid NOT NULL REFERENCES datasets,
    definition       jsonb NOT NULL,
    -- What the run reads, settled when the job is made: a release made later stands on the same rows.
    submissions      uuid[] NOT NULL,
    status           text NOT NULL DEFAULT 'queued'
                     CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    progress         double precision NOT NULL DEFAULT 0,
    phase            text,
    error            jsonb,
    attempt          integer NOT NULL DEFAULT 0,
    lease_token      uuid,
    lease_expires_at timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    created_by       uuid,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    ended_at         timestamptz,
    CHECK ((status = 'running') = (lease_token IS NOT NULL))
);
CREATE INDEX jobs_claimable ON jobs (id) WHERE status IN ('queued', 'running');
CREATE INDEX jobs_organization ON jobs (organization_id, id);
CREATE INDEX jobs_dataset ON jobs (dataset_id);

-- `suppressed` holds the row numbers suppressed by the step, sealed with the dataset's data key.
CREATE TABLE job_steps (
    job_id     uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    step       integer NOT NULL,
    item       jsonb NOT NULL,
    suppressed bytea,
    PRIMARY KEY (job_id, step)
);

CREATE TABLE releases (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    job_id          uuid NOT NULL REFERENCES jobs,
    dataset_id      uuid NOT NULL REFERENCES datasets,
    name            text,
    step            integer,
    -- Made by the job itself at its end (`release: true`): at most one a job.
    by_job          boolean NOT NULL,
    rows            bigint NOT NULL,
    suppressed_rows bigint NOT NULL,
    privacy         jsonb NOT NULL,
    cut             jsonb,
    verification    jsonb NOT NULL,
    report          jsonb NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE UNIQUE INDEX releases_by_job ON releases (job_id) WHERE by_job;
CREATE INDEX releases_organization ON releases (organization_id, id);

CREATE TABLE release_tables (
    release_id uuid NOT NULL REFERENCES releases,
    name       text NOT NULL,
    position   integer NOT NULL,
    rows       bigint NOT NULL,
    columns    jsonb NOT NULL,
    -- Of the CSV as served, uncompressed.
    sha256     bytea NOT NULL,
    csv_bytes  bigint NOT NULL,
    PRIMARY KEY (release_id, name)
);

CREATE TABLE release_chunks (
    release_id uuid NOT NULL,
    table_name text NOT NULL,
    index      integer NOT NULL,
    rows       integer NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (release_id, table_name, index),
    FOREIGN KEY (release_id, table_name) REFERENCES release_tables
);
ALTER TABLE release_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE grants (
    id           uuid PRIMARY KEY,
    release_id   uuid NOT NULL REFERENCES releases,
    recipient_id uuid NOT NULL REFERENCES organizations,
    purpose      text NOT NULL,
    expires_at   timestamptz,
    created_at   timestamptz NOT NULL,
    created_by   uuid
);
CREATE INDEX grants_recipient ON grants (recipient_id, release_id);
CREATE INDEX grants_release ON grants (release_id, id);
