-- Datasets whose rows are in Parquet files of their holder, and releases that are written as files: below
-- prefixes that the settings of the service grant to organizations (`object_stores`). No credential is
-- stored.

-- The objects of a located dataset, as they were read when it was declared. Its jobs read the stored rows,
-- and only while the objects are the same.
CREATE TABLE located_objects (
    submission_id uuid NOT NULL REFERENCES submissions ON DELETE CASCADE,
    index         integer NOT NULL,
    -- In its bucket, or on the machine.
    path          text NOT NULL,
    etag          text NOT NULL,
    bytes         bigint NOT NULL,
    PRIMARY KEY (submission_id, index)
);

-- Where files of a release are, or may be: the row is committed before the first file is written, under
-- the lease of the attempt. It is deleted after the files of an attempt that made no release.
CREATE TABLE release_locations (
    release_id      uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    job_id          uuid NOT NULL REFERENCES jobs,
    lease_token     uuid NOT NULL,
    -- The folder that the job names. The files are in the folder of the release's id below it.
    url             text NOT NULL,
    created_at      timestamptz NOT NULL,
    -- Since when the files are removed, because the release was withdrawn.
    removed_at      timestamptz
);

-- The manifest of a release that is written as files, in the transaction that ends its job.
CREATE TABLE release_files (
    release_id uuid NOT NULL REFERENCES releases,
    position   integer NOT NULL,
    table_name text NOT NULL,
    name       text NOT NULL,
    rows       bigint NOT NULL,
    bytes      bigint NOT NULL,
    sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
    PRIMARY KEY (release_id, position),
    UNIQUE (release_id, name)
);


-- Row-level security, as in the first migration.

ALTER TABLE located_objects ENABLE ROW LEVEL SECURITY;
ALTER TABLE release_locations ENABLE ROW LEVEL SECURITY;
ALTER TABLE release_files ENABLE ROW LEVEL SECURITY;

CREATE POLICY of_submission ON located_objects USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM submissions s WHERE s.id = submission_id));
CREATE POLICY of_organization ON release_locations USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY of_holder ON release_files USING (
    (SELECT pais_serves_all()) OR EXISTS (
        SELECT FROM releases r
        WHERE r.id = release_id AND r.organization_id = (SELECT pais_organization())));
CREATE POLICY of_recipient ON release_files FOR SELECT USING (
    EXISTS (SELECT FROM releases r WHERE r.id = release_id));
