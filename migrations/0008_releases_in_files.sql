-- A table whose rows are in the files of its release alone has no CSV, and no chunks.
ALTER TABLE release_tables ALTER COLUMN sha256 DROP NOT NULL;
ALTER TABLE release_tables ALTER COLUMN csv_bytes DROP NOT NULL;
ALTER TABLE release_tables ADD CONSTRAINT has_csv_or_not CHECK ((sha256 IS NULL) = (csv_bytes IS NULL));
