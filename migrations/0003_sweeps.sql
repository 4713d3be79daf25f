-- A job may try several combinations of its privacy parameters. Each is a run of its own with
-- steps of its own; a job without lists has the run 0 alone.
ALTER TABLE job_steps ADD COLUMN run integer NOT NULL DEFAULT 0;
ALTER TABLE job_steps DROP CONSTRAINT job_steps_pkey;
ALTER TABLE job_steps ADD PRIMARY KEY (job_id, run, step);

-- What each run of a sweep came to.
CREATE TABLE job_runs (
    job_id uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    run    integer NOT NULL,
    item   jsonb NOT NULL,
    PRIMARY KEY (job_id, run)
);
