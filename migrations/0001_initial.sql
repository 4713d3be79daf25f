-- The schema of pais.
--
-- Organizations own everything: datasets with submissions of rows, jobs that anonymize them, and the
-- releases that jobs make. A grant lets another organization read a release.
--
-- What quotes raw rows is sealed (AES-256-GCM) with a data key of its dataset, and digests of raw rows
-- are keyed, so that a copy of the database discloses no person (docs/architecture.md). Ids are UUIDs of
-- version 7, which order rows by their time.


-- Organizations and tokens

CREATE TABLE organizations (
    id             uuid PRIMARY KEY,
    name           text NOT NULL UNIQUE,
    display_name   text,
    created_at     timestamptz NOT NULL,
    -- Since when its tokens are refused; null while it is enabled.
    disabled_at    timestamptz,
    -- Organizations take turns: when the last job of each was claimed.
    job_claimed_at timestamptz
);

-- A token's secret is stored only as a SHA-256: it is 256 random bits, so no slow hash is needed.
CREATE TABLE tokens (
    id                   uuid PRIMARY KEY,
    organization_id      uuid NOT NULL REFERENCES organizations,
    role                 text NOT NULL CHECK (role IN ('admin', 'holder', 'recipient', 'auditor')),
    label                text,
    secret_sha256        bytea NOT NULL UNIQUE,
    created_at           timestamptz NOT NULL,
    expires_at           timestamptz,
    revoked_at           timestamptz,
    -- When a refused use was last recorded in the audit log: at most once a minute.
    refusal_recorded_at  timestamptz,
    -- The person of a token that stands for a sign-in with an OpenID issuer. Nobody knows its secret; it
    -- is in events and approvals, and can be revoked, like any other token.
    oidc_subject         text,
    -- A token that its organization enables itself: the administrator gets a code, which is exchanged
    -- for the secret. Null once that has happened.
    enrolment_sha256     bytea UNIQUE,
    enrolment_expires_at timestamptz
);
CREATE UNIQUE INDEX tokens_person ON tokens (organization_id, role, oidc_subject)
    WHERE oidc_subject IS NOT NULL;
CREATE INDEX tokens_oidc_subject ON tokens (oidc_subject) WHERE oidc_subject IS NOT NULL;

-- The floor that a holder sets for its own jobs, releases and grants.
CREATE TABLE policies (
    organization_id  uuid PRIMARY KEY REFERENCES organizations,
    document         jsonb NOT NULL,
    require_approval boolean NOT NULL,
    changed_at       timestamptz NOT NULL,
    changed_by       uuid
);


-- The audit log

CREATE TABLE audit_events (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    at              timestamptz NOT NULL,
    token_id        uuid,
    -- The address from which the action was requested.
    address         text,
    action          text NOT NULL,
    subject         text,
    detail          jsonb NOT NULL DEFAULT '{}',
    outcome         text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'refused'))
);
CREATE INDEX audit_events_newest ON audit_events (organization_id, id DESC);

-- The chain of hashes over the log of each organization. An event is chained within about a second after
-- its commit, so that requests do not wait for each other's place in the chain.
CREATE TABLE audit_chain (
    organization_id uuid NOT NULL REFERENCES organizations,
    seq             bigint NOT NULL,
    event_id        uuid NOT NULL UNIQUE REFERENCES audit_events,
    hash            bytea NOT NULL,
    PRIMARY KEY (organization_id, seq)
);

-- The events that have no place in a chain yet.
CREATE TABLE audit_pending (
    event_id uuid PRIMARY KEY REFERENCES audit_events
);

-- The last link of each chain, authenticated with a key that is not in the database: without it the end
-- of a chain could be cut off unnoticed.
CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    seq             bigint NOT NULL,
    hash            bytea NOT NULL,
    mac             bytea NOT NULL
);

-- The end of the part of each log that was archived and removed. The rest continues from its hash, which
-- is authenticated like the end of the log.
CREATE TABLE audit_archives (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    seq             bigint NOT NULL,
    hash            bytea NOT NULL,
    mac             bytea NOT NULL
);

CREATE FUNCTION audit_event_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_pending VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_events_pending AFTER INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_event_pending();

-- Events and links are only added.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
CREATE TRIGGER audit_chain_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();


-- Processes, and answers for retries

-- The processes that use the database. `home` is the id of the data directory: a process that starts
-- there replaces the previous one, which is dead. Times are those of the database's clock.
CREATE TABLE instances (
    id         uuid PRIMARY KEY,
    home       uuid NOT NULL,
    version    text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL
);
CREATE INDEX instances_home ON instances (home);

-- The first answer to a request with an idempotency key, kept for 24 hours. Until there is one the row
-- reserves the key for the request that `instance` handles. `fingerprint` is the HMAC of the SHA-256 of
-- the request's body under a key of the service.
CREATE TABLE idempotent_answers (
    organization_id uuid NOT NULL REFERENCES organizations,
    endpoint        text NOT NULL,
    key             text NOT NULL,
    reservation     uuid NOT NULL,
    instance        uuid NOT NULL,
    created_at      timestamptz NOT NULL,
    fingerprint     bytea,
    status          integer,
    headers         jsonb,
    sealed_body     bytea,
    PRIMARY KEY (organization_id, endpoint, key),
    CHECK (num_nulls(fingerprint, status, headers, sealed_body) IN (0, 4))
);
CREATE INDEX idempotent_answers_age ON idempotent_answers (created_at);
CREATE UNIQUE INDEX idempotent_answers_reservation ON idempotent_answers (reservation);


-- Keys

-- One row: which key-encryption key wraps the data keys now, and the service's own key under it.
CREATE TABLE service_keys (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    key_id      bytea NOT NULL,
    wrapped_key bytea NOT NULL
);

-- The wrapped data keys of datasets, and the keys of submissions sealed with them (by the id of the
-- submission), unless the service keeps them in files. Small, so that the table can be rewritten whenever
-- a key is destroyed; no reference, because a key is destroyed at another time than its owner is deleted.
CREATE TABLE dataset_keys (
    dataset_id  uuid PRIMARY KEY,
    wrapped_key bytea NOT NULL
);

-- Deleted datasets and submissions whose key is still to be destroyed.
CREATE TABLE keys_to_destroy (
    owner_id uuid PRIMARY KEY
);


-- Taxonomies and datasets

-- Trees are stored once for each organization, under the SHA-256 of their text. Taxonomies and the
-- columns of datasets refer to them.
CREATE TABLE trees (
    organization_id uuid NOT NULL REFERENCES organizations,
    sha256          bytea NOT NULL,
    root            jsonb NOT NULL,
    PRIMARY KEY (organization_id, sha256)
);

CREATE TABLE taxonomies (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name            text NOT NULL,
    tree_sha256     bytea NOT NULL,
    leaves          integer NOT NULL,
    nodes           integer NOT NULL,
    depth           integer NOT NULL,
    created_at      timestamptz NOT NULL,
    UNIQUE (organization_id, name),
    FOREIGN KEY (organization_id, tree_sha256) REFERENCES trees
);
CREATE INDEX taxonomies_tree ON taxonomies (organization_id, tree_sha256);

-- A deleted dataset keeps its row, so that jobs and releases can say that it was deleted, but neither its
-- definition nor its key: without the key nothing that is sealed can be opened again.
CREATE TABLE datasets (
    id                uuid PRIMARY KEY,
    organization_id   uuid NOT NULL REFERENCES organizations,
    name              text NOT NULL,
    -- As declared, without the inline trees, which are in `dataset_trees`.
    definition        jsonb,
    -- About its columns.
    warnings          jsonb NOT NULL,
    created_at        timestamptz NOT NULL,
    delete_after      timestamptz,
    deleted_at        timestamptz,
    -- Why nothing of it is deleted for now.
    legal_hold_reason text,
    legal_hold_since  timestamptz,
    -- What lists show and the cleanup asks for, so that they read no definition.
    description       text GENERATED ALWAYS AS (definition ->> 'description') STORED,
    columns           integer
                      GENERATED ALWAYS AS (jsonb_array_length(definition -> 'columns')) STORED,
    retention_days    bigint
                      GENERATED ALWAYS AS ((definition ->> 'retention_days')::bigint) STORED,
    submission_retention_days bigint
                      GENERATED ALWAYS AS ((definition ->> 'submission_retention_days')::bigint) STORED,
    CHECK ((deleted_at IS NULL) = (definition IS NOT NULL)),
    CONSTRAINT datasets_legal_hold CHECK (
        num_nulls(legal_hold_reason, legal_hold_since) IN (0, 2)
        AND (deleted_at IS NULL OR legal_hold_since IS NULL))
);
CREATE UNIQUE INDEX datasets_name ON datasets (organization_id, name) WHERE deleted_at IS NULL;

-- The tree of a column; `position` is that of the column in the definition, from 0.
CREATE TABLE dataset_trees (
    dataset_id      uuid NOT NULL REFERENCES datasets,
    position        integer NOT NULL,
    organization_id uuid NOT NULL,
    sha256          bytea NOT NULL,
    PRIMARY KEY (dataset_id, position),
    FOREIGN KEY (organization_id, sha256) REFERENCES trees
);
CREATE INDEX dataset_trees_tree ON dataset_trees (organization_id, sha256);


-- Submissions

-- The columns from `text_bytes` on are known at the end of a submission, in the transaction that began
-- it. Digests are HMACs under a key of the dataset: bare ones would confirm guessed rows.
CREATE TABLE submissions (
    id                 uuid PRIMARY KEY,
    dataset_id         uuid NOT NULL REFERENCES datasets,
    rows               bigint NOT NULL,
    bytes              bigint NOT NULL,
    media_type         text NOT NULL,
    created_at         timestamptz NOT NULL,
    warnings           jsonb NOT NULL DEFAULT '[]',
    -- What the distinct values of the chunks take in memory.
    text_bytes         bigint,
    -- The SHA-256 of the body, sealed, and its HMAC.
    sealed_sha256      bytea,
    body_digest        bytea,
    -- The HMAC of the rows whatever their order and file format; null where no column is stored.
    rows_digest        bytea,
    -- By identifier column, the number of rows whose identifier occurred before in the submission; null
    -- where none were counted.
    identifier_repeats jsonb
);
CREATE INDEX submissions_dataset ON submissions (dataset_id, id);
CREATE INDEX submissions_body_digest ON submissions (dataset_id, body_digest);
CREATE INDEX submissions_rows_digest ON submissions (dataset_id, rows_digest);

-- Columnar chunks of some 64 Ki rows, sealed with a key of the submission, which is destroyed when the
-- submission is deleted. They are compressed already.
CREATE TABLE submission_chunks (
    submission_id uuid NOT NULL REFERENCES submissions ON DELETE CASCADE,
    index         integer NOT NULL,
    rows          integer NOT NULL,
    sealed        bytea NOT NULL,
    PRIMARY KEY (submission_id, index)
);
ALTER TABLE submission_chunks ALTER COLUMN sealed SET STORAGE EXTERNAL;


-- Jobs

CREATE TABLE jobs (
    id                uuid PRIMARY KEY,
    organization_id   uuid NOT NULL REFERENCES organizations,
    dataset_id        uuid NOT NULL REFERENCES datasets,
    -- Without the sensitive values and the pre-generalized values that the job lists;
    -- `sealed_definition` has all of it, null where the job lists none.
    definition        jsonb NOT NULL,
    sealed_definition bytea,
    -- What the run reads, fixed when the job is created: a later release has the same rows.
    submissions       uuid[] NOT NULL,
    created_by        uuid,
    created_at        timestamptz NOT NULL,

    status            text NOT NULL DEFAULT 'queued'
                      CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    started_at        timestamptz,
    ended_at          timestamptz,
    cancel_requested  boolean NOT NULL DEFAULT false,
    error             jsonb,
    -- What the holder should know about the rows: `{code, detail, pointer}`, without values.
    warnings          jsonb NOT NULL DEFAULT '[]',

    -- The lease of the process that runs the job: every write of an attempt is conditional on its token.
    attempt           integer NOT NULL DEFAULT 0,
    lease_token       uuid,
    lease_expires_at  timestamptz,
    lease_instance    uuid,
    -- The lost lease whose loss was counted as an attempt. If the process that held it proves to be
    -- alive, the attempt is taken back.
    counted_lease     uuid,

    -- The share done, and counts: the rows to read, those read, and the specializations performed. The
    -- estimate is null unless the job runs.
    progress          double precision NOT NULL DEFAULT 0,
    phase             text,
    rows              bigint NOT NULL DEFAULT 0,
    rows_read         bigint NOT NULL DEFAULT 0,
    steps_done        bigint NOT NULL DEFAULT 0,
    remaining_seconds double precision,
    CHECK ((status = 'running') = (lease_token IS NOT NULL))
);
CREATE INDEX jobs_organization ON jobs (organization_id, id);
CREATE INDEX jobs_dataset ON jobs (dataset_id);
-- The queue of each organization; the jobs that returned to it after an attempt that ended with its
-- process; and the running jobs.
CREATE INDEX jobs_waiting ON jobs (organization_id, id) WHERE status = 'queued' AND attempt = 0;
CREATE INDEX jobs_returned ON jobs (id) WHERE status = 'queued' AND attempt > 0;
CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running';

-- The steps of each run. A job that lists several values of its privacy parameters has a run for each
-- combination, any other job the run 0 alone. A step's label, children and split points can be raw
-- values, and so it is sealed, as are the numbers of the rows that the step suppressed.
CREATE TABLE job_steps (
    job_id      uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    run         integer NOT NULL,
    step        integer NOT NULL,
    sealed_item bytea NOT NULL,
    suppressed  bytea,
    PRIMARY KEY (job_id, run, step)
);

-- The result of each run of a sweep.
CREATE TABLE job_runs (
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    run    integer NOT NULL,
    item   jsonb NOT NULL,
    PRIMARY KEY (job_id, run)
);


-- Releases and grants

-- Immutable, but for the withdrawal. A withdrawn release keeps its metadata; its tables and its report
-- are served no more.
CREATE TABLE releases (
    id                   uuid PRIMARY KEY,
    organization_id      uuid NOT NULL REFERENCES organizations,
    job_id               uuid NOT NULL REFERENCES jobs,
    dataset_id           uuid NOT NULL REFERENCES datasets,
    name                 text,
    step                 integer,
    -- Created by the job itself at its end (`release: true`): at most one for each job.
    by_job               boolean NOT NULL,
    -- The token that requested the release, or its job.
    created_by           uuid,
    created_at           timestamptz NOT NULL,
    rows                 bigint NOT NULL,
    suppressed_rows      bigint NOT NULL,
    privacy              jsonb NOT NULL,
    suppression_for      text CHECK (suppression_for IN ('size', 'size_and_confidence')),
    missing_sensitive    text NOT NULL CHECK (missing_sensitive IN ('excluded', 'counted')),
    cut                  jsonb,
    verification         jsonb NOT NULL,
    report               jsonb NOT NULL,
    warnings             jsonb NOT NULL DEFAULT '[]',
    -- What a recipient needs to resolve the labels (pais_core::codebook).
    codebook             jsonb NOT NULL,
    -- The submissions over which `release_sources` numbers rows: `[{id, rows}]`, in the order in which
    -- they were loaded; null if all were deleted before the release was stored.
    source_submissions   jsonb,
    -- The shares of raw values and of labels in each column, for the holder's page of the report. Sealed,
    -- since its labels are raw values.
    sealed_distributions bytea,
    withdrawn_at         timestamptz,
    withdrawn_reason     text,
    CONSTRAINT releases_withdrawal CHECK ((withdrawn_at IS NULL) = (withdrawn_reason IS NULL))
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

-- The rows, not sealed: they are anonymized.
CREATE TABLE release_chunks (
    release_id uuid NOT NULL,
    table_name text NOT NULL,
    index      integer NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (release_id, table_name, index),
    FOREIGN KEY (release_id, table_name) REFERENCES release_tables
);
ALTER TABLE release_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- The raw row of each released row, sealed with the key of the dataset.
CREATE TABLE release_sources (
    release_id uuid NOT NULL REFERENCES releases,
    index      integer NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (release_id, index)
);
ALTER TABLE release_sources ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- Releases that a second token of the holder has approved.
CREATE TABLE release_approvals (
    release_id  uuid PRIMARY KEY REFERENCES releases,
    approved_by uuid NOT NULL,
    approved_at timestamptz NOT NULL
);

-- A grant carries the holder of its release: a policy of grants that reads releases would refer to
-- itself.
CREATE TABLE grants (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    release_id      uuid NOT NULL REFERENCES releases,
    recipient_id    uuid NOT NULL REFERENCES organizations,
    purpose         text NOT NULL,
    expires_at      timestamptz,
    created_at      timestamptz NOT NULL,
    created_by      uuid
);
CREATE INDEX grants_recipient ON grants (recipient_id, release_id);
CREATE INDEX grants_release ON grants (release_id, id);

-- The recipients that have fetched a part of a release: what they know of it does not end with a grant.
CREATE TABLE release_readers (
    release_id   uuid NOT NULL REFERENCES releases,
    recipient_id uuid NOT NULL REFERENCES organizations,
    first_at     timestamptz NOT NULL,
    PRIMARY KEY (release_id, recipient_id)
);


-- Row-level security
--
-- A second separation of organizations, below the conditions of the queries: PostgreSQL shows a request
-- only the rows of its organization. The service sets for each piece of work whom it serves, in two
-- settings of the connection: `pais.scope` (`service`, `administration` or `organization`) and
-- `pais.organization`. Where they are not set, no row is shown.
--
-- The owner of the tables, who makes backups, is not bound by policies. The service works under the role
-- `pais_service`, which it creates and to which it grants the tables at its start (src/db/service_role.rs):
-- a role belongs to the server, not to the database. Policies call the functions in sub-selects, so that
-- they run once for each statement and not for each row.

CREATE FUNCTION pais_serves_all() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('pais.scope', true) = 'service', false)
$$;
CREATE FUNCTION pais_administers() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('pais.scope', true) IN ('service', 'administration'), false)
$$;
CREATE FUNCTION pais_organization() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT nullif(current_setting('pais.organization', true), '')::uuid
$$;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'tokens', 'policies', 'audit_events', 'audit_chain', 'audit_heads', 'audit_archives',
        'idempotent_answers', 'trees', 'taxonomies', 'datasets', 'dataset_trees', 'submissions',
        'submission_chunks', 'jobs', 'job_steps', 'job_runs', 'releases', 'release_tables',
        'release_chunks', 'release_sources', 'release_approvals', 'grants', 'release_readers'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY[
        'policies', 'audit_chain', 'idempotent_answers', 'trees', 'taxonomies', 'datasets',
        'dataset_trees', 'jobs'
    ] LOOP
        EXECUTE format(
            'CREATE POLICY of_organization ON %I USING (
                (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()))', name);
    END LOOP;
END $$;

CREATE POLICY of_organization ON tokens USING (
    (SELECT pais_administers()) OR organization_id = (SELECT pais_organization()));

-- Any scope may add events: the fetch of a release is an event in the log of its holder.
CREATE POLICY of_organization ON audit_events FOR SELECT USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY by_everybody ON audit_events FOR INSERT WITH CHECK (true);
CREATE POLICY of_service ON audit_heads USING ((SELECT pais_serves_all()));
CREATE POLICY of_organization ON audit_archives FOR SELECT USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));

CREATE POLICY of_dataset ON submissions USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM datasets d WHERE d.id = dataset_id));
CREATE POLICY of_submission ON submission_chunks USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM submissions s WHERE s.id = submission_id));
CREATE POLICY of_job ON job_steps USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM jobs j WHERE j.id = job_id));
CREATE POLICY of_job ON job_runs USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM jobs j WHERE j.id = job_id));

-- A recipient sees the releases that it was granted.
CREATE POLICY of_holder ON grants USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY of_recipient ON grants FOR SELECT USING (recipient_id = (SELECT pais_organization()));

CREATE POLICY of_holder ON releases USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY of_recipient ON releases FOR SELECT USING (EXISTS (
    SELECT FROM grants g
    WHERE g.release_id = releases.id AND g.recipient_id = (SELECT pais_organization())));

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'release_tables', 'release_chunks', 'release_sources', 'release_approvals', 'release_readers'
    ] LOOP
        EXECUTE format(
            'CREATE POLICY of_holder ON %I USING (
                (SELECT pais_serves_all()) OR EXISTS (
                    SELECT FROM releases r
                    WHERE r.id = release_id AND r.organization_id = (SELECT pais_organization())))',
            name);
    END LOOP;
    -- Which raw rows a release was made from is for its holder alone.
    FOREACH name IN ARRAY ARRAY['release_tables', 'release_chunks', 'release_approvals'] LOOP
        EXECUTE format(
            'CREATE POLICY of_recipient ON %I FOR SELECT USING (
                EXISTS (SELECT FROM releases r WHERE r.id = release_id))', name);
    END LOOP;
END $$;

-- A recipient records that it has fetched a release.
CREATE POLICY of_recipient ON release_readers FOR SELECT USING (
    recipient_id = (SELECT pais_organization()));
CREATE POLICY by_recipient ON release_readers FOR INSERT WITH CHECK (
    recipient_id = (SELECT pais_organization())
    AND EXISTS (SELECT FROM releases r WHERE r.id = release_id));

-- Whether a grant takes effect depends on the policy of the holder.
CREATE POLICY of_recipient ON policies FOR SELECT USING (EXISTS (
    SELECT FROM grants g
    WHERE g.organization_id = policies.organization_id
          AND g.recipient_id = (SELECT pais_organization())));
