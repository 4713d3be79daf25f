-- Publications: jobs that repeat for the rows that no edition has yet.
--
-- An edition is a job of the queue, and its release a release like any other. Its grants are made with
-- its publication, in one transaction.

CREATE TABLE publications (
    id                uuid PRIMARY KEY,
    organization_id   uuid NOT NULL REFERENCES organizations,
    dataset_id        uuid NOT NULL REFERENCES datasets,
    name              text NOT NULL,
    -- The job of each edition, without the values that it lists; `sealed_definition` has all of it, null
    -- where it lists none.
    definition        jsonb NOT NULL,
    sealed_definition bytea,
    trigger           text NOT NULL CHECK (trigger IN ('submission', 'manual')),
    paused            boolean NOT NULL DEFAULT false,
    created_by        uuid,
    created_at        timestamptz NOT NULL,
    -- A deleted publication keeps its row: its editions stay.
    deleted_at        timestamptz
);
CREATE UNIQUE INDEX publications_name ON publications (organization_id, name)
    WHERE deleted_at IS NULL;
CREATE INDEX publications_dataset ON publications (dataset_id) WHERE deleted_at IS NULL;

-- Who gets the next editions.
CREATE TABLE publication_recipients (
    publication_id  uuid NOT NULL REFERENCES publications,
    recipient_id    uuid NOT NULL REFERENCES organizations,
    organization_id uuid NOT NULL,
    purpose         text NOT NULL,
    expires_at      timestamptz,
    PRIMARY KEY (publication_id, recipient_id)
);
CREATE INDEX publication_recipients_recipient ON publication_recipients (recipient_id);

CREATE TABLE editions (
    publication_id  uuid NOT NULL REFERENCES publications,
    number          integer NOT NULL,
    organization_id uuid NOT NULL,
    -- While it is queued, its job says whether it runs.
    status          text NOT NULL DEFAULT 'queued'
                    CHECK (status IN ('queued', 'awaiting_approval', 'published', 'refused', 'failed')),
    job_id          uuid NOT NULL UNIQUE REFERENCES jobs,
    release_id      uuid UNIQUE REFERENCES releases,
    -- What was decided with its release: for each recipient the releases that it then knew.
    decided_with    jsonb,
    -- Rows that wait for a later edition; null until its job has decided.
    held_back_rows  bigint,
    error           jsonb,
    created_at      timestamptz NOT NULL,
    published_at    timestamptz,
    PRIMARY KEY (publication_id, number),
    CHECK ((status = 'published') = (published_at IS NOT NULL))
);
-- One edition at a time: the next one depends on what this one publishes.
CREATE UNIQUE INDEX editions_open ON editions (publication_id)
    WHERE status IN ('queued', 'awaiting_approval');
CREATE INDEX editions_waiting ON editions (status)
    WHERE status IN ('queued', 'awaiting_approval');

-- The submissions whose rows an edition takes, with the number of their rows that wait after it; null
-- until its job has decided. No reference to the submission, which can be deleted.
CREATE TABLE edition_submissions (
    publication_id uuid NOT NULL,
    number         integer NOT NULL,
    submission_id  uuid NOT NULL,
    held_back      bigint,
    PRIMARY KEY (publication_id, number, submission_id),
    FOREIGN KEY (publication_id, number) REFERENCES editions
);
CREATE INDEX edition_submissions_submission ON edition_submissions (submission_id);


-- Row-level security, as in the first migration. A recipient sees the editions whose release it was
-- granted, and their publications. Policies of recipients refer to grants alone, so that none refers to
-- itself.

ALTER TABLE publications ENABLE ROW LEVEL SECURITY;
ALTER TABLE publication_recipients ENABLE ROW LEVEL SECURITY;
ALTER TABLE editions ENABLE ROW LEVEL SECURITY;
ALTER TABLE edition_submissions ENABLE ROW LEVEL SECURITY;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['publications', 'publication_recipients', 'editions'] LOOP
        EXECUTE format(
            'CREATE POLICY of_organization ON %I USING (
                (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()))', name);
    END LOOP;
END $$;
CREATE POLICY of_edition ON edition_submissions USING (
    (SELECT pais_serves_all()) OR EXISTS (
        SELECT FROM editions e
        WHERE e.publication_id = edition_submissions.publication_id
          AND e.number = edition_submissions.number
          AND e.organization_id = (SELECT pais_organization())));

CREATE POLICY of_recipient ON publication_recipients FOR SELECT USING (
    recipient_id = (SELECT pais_organization()));
CREATE POLICY of_recipient ON editions FOR SELECT USING (
    status = 'published' AND EXISTS (
        SELECT FROM grants g
        WHERE g.release_id = editions.release_id AND g.recipient_id = (SELECT pais_organization())));
CREATE POLICY of_recipient ON publications FOR SELECT USING (
    EXISTS (SELECT FROM publication_recipients r
            WHERE r.publication_id = publications.id
              AND r.recipient_id = (SELECT pais_organization()))
    OR EXISTS (SELECT FROM editions e WHERE e.publication_id = publications.id));
