-- The HMAC, under a key of the dataset, of the rows of the submission whatever their order and file
-- format. Null for a submission of an earlier version, and where no column is stored.
ALTER TABLE submissions ADD COLUMN rows_digest bytea;
CREATE INDEX submissions_rows_digest ON submissions (dataset_id, rows_digest);

-- By identifier column, the number of rows whose identifier occurred before in the submission; null
-- where none were counted.
ALTER TABLE submissions ADD COLUMN identifier_repeats jsonb;
