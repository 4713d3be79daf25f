-- The raw row of each released row, sealed with the key of the dataset, and the submissions that the
-- rows are numbered over: `[{id, rows}]`, in the order in which they were loaded.
CREATE TABLE release_sources (
    release_id uuid NOT NULL REFERENCES releases,
    index      integer NOT NULL,
    rows       integer NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (release_id, index)
);
ALTER TABLE release_sources ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE releases ADD COLUMN source_submissions jsonb;

-- The shares of raw values and of labels in each column, for the holder's page of the report; sealed
-- with the key of the dataset, since its labels are raw values.
ALTER TABLE releases ADD COLUMN sealed_distributions bytea;

-- The recipients that have fetched a part of a release: what they know of it does not end with a
-- grant.
CREATE TABLE release_readers (
    release_id   uuid NOT NULL REFERENCES releases,
    recipient_id uuid NOT NULL REFERENCES organizations,
    first_at     timestamptz NOT NULL,
    PRIMARY KEY (release_id, recipient_id)
);
INSERT INTO release_readers (release_id, recipient_id, first_at)
SELECT r.id, o.id, min(e.at)
FROM audit_events e
JOIN releases r ON r.id::text = e.subject
JOIN organizations o ON o.id::text = e.detail ->> 'by'
WHERE e.action = 'release.fetched'
GROUP BY r.id, o.id;
