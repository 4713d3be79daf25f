-- The processes that use the database. `home` is that of the data directory: a process that starts
-- there has replaced the one of before, which is dead. Times are those of the database's clock.
CREATE TABLE instances (
    id         uuid PRIMARY KEY,
    home       uuid NOT NULL,
    version    text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL
);
CREATE INDEX instances_home ON instances (home);

-- The process that holds the lease; null for a lease of an earlier version.
ALTER TABLE jobs ADD COLUMN lease_instance uuid;
-- The process that handles the request; null for a request of an earlier version.
ALTER TABLE idempotent_answers ADD COLUMN instance uuid;
