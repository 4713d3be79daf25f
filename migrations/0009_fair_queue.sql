-- Organizations take turns: when the last job of each was claimed.
ALTER TABLE organizations ADD COLUMN job_claimed_at timestamptz;

-- The lost lease whose loss was counted as an attempt. If the process that held it proves to be alive,
-- the attempt is taken back.
ALTER TABLE jobs ADD COLUMN counted_lease uuid;

-- The queue by organization; jobs that went back to it after an attempt that ended with its process;
-- and the jobs that run.
CREATE INDEX jobs_waiting ON jobs (organization_id, id) WHERE status = 'queued' AND attempt = 0;
CREATE INDEX jobs_returned ON jobs (id) WHERE status = 'queued' AND attempt > 0;
CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running';
DROP INDEX jobs_claimable;
