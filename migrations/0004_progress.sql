-- How far a run is, in counts: the rows it is to read (of the submissions settled with the job),
-- those it has read, and the specializations it has performed. The estimate stands while it runs.
ALTER TABLE jobs ADD COLUMN rows bigint NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN rows_read bigint NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN steps_done bigint NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN remaining_seconds double precision;

-- Jobs there already; 0 where the rows have been deleted with their dataset.
UPDATE jobs SET rows = coalesce(
    (SELECT sum(s.rows)::bigint FROM submissions s WHERE s.id = ANY (jobs.submissions)), 0);
UPDATE jobs SET
    rows_read = rows,
    steps_done = (SELECT count(*) FROM job_steps t WHERE t.job_id = jobs.id AND t.step > 0)
WHERE status = 'succeeded';
