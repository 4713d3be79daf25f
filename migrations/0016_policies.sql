-- The floor that a holder sets for its own jobs, releases and grants.
CREATE TABLE policies (
    organization_id  uuid PRIMARY KEY REFERENCES organizations,
    document         jsonb NOT NULL,
    require_approval boolean NOT NULL,
    changed_at       timestamptz NOT NULL,
    changed_by       uuid
);

-- The token that asked for a release; of a release that a job made itself, that of the job.
ALTER TABLE releases ADD COLUMN created_by uuid;
UPDATE releases r SET created_by = j.created_by FROM jobs j WHERE j.id = r.job_id;

-- Releases that a second token of the holder has approved.
CREATE TABLE release_approvals (
    release_id  uuid PRIMARY KEY REFERENCES releases,
    approved_by uuid NOT NULL,
    approved_at timestamptz NOT NULL
);
