-- Who may do what: organizations, their tokens, the audit log, and answers kept for retries.

CREATE TABLE organizations (
    id           uuid PRIMARY KEY,
    name         text NOT NULL UNIQUE,
    display_name text,
    created_at   timestamptz NOT NULL
);

-- A token's secret is stored only as a SHA-256: it is 256 random bits, so no slow hash is needed.
CREATE TABLE tokens (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    role            text NOT NULL CHECK (role IN ('admin', 'holder', 'recipient', 'auditor')),
    label           text,
    secret_sha256   bytea NOT NULL UNIQUE,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,
    revoked_at      timestamptz
);

CREATE TABLE audit_events (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    at              timestamptz NOT NULL,
    token_id        uuid,
    action          text NOT NULL,
    subject         text,
    detail          jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_events_newest ON audit_events (organization_id, id DESC);

-- The first answer to a request with an idempotency key, kept for 24 hours. Until there is one
-- the row reserves the key for the request under way.
CREATE TABLE idempotent_answers (
    organization_id uuid NOT NULL REFERENCES organizations,
    endpoint        text NOT NULL,
    key             text NOT NULL,
    reservation     uuid NOT NULL,
    created_at      timestamptz NOT NULL,
    body_sha256     bytea,
    status          integer,
    headers         jsonb,
    body            bytea,
    PRIMARY KEY (organization_id, endpoint, key),
    CHECK (num_nulls(body_sha256, status, headers, body) IN (0, 4))
);
CREATE INDEX idempotent_answers_age ON idempotent_answers (created_at);
CREATE UNIQUE INDEX idempotent_answers_reservation ON idempotent_answers (reservation);

CREATE TABLE taxonomies (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name            text NOT NULL,
    root            jsonb NOT NULL,
    leaves          integer NOT NULL,
    nodes           integer NOT NULL,
    depth           integer NOT NULL,
    created_at      timestamptz NOT NULL,
    UNIQUE (organization_id, name)
);

-- A deleted dataset keeps its row, so that jobs and releases can say that it was deleted, but
-- neither its schema nor its key: without `wrapped_key` no chunk can be opened again.
CREATE TABLE datasets (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name            text NOT NULL,
    definition      jsonb,
    wrapped_key     bytea,
    created_at      timestamptz NOT NULL,
    delete_after    timestamptz,
    deleted_at      timestamptz,
    CHECK ((deleted_at IS NULL) = (wrapped_key IS NOT NULL)),
    CHECK ((deleted_at IS NULL) = (definition IS NOT NULL))
);
CREATE UNIQUE INDEX datasets_name ON datasets (organization_id, name) WHERE deleted_at IS NULL;
