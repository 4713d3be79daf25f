-- What the distinct values of the chunks take in memory; null for a submission of an earlier
-- version, which is estimated from the size of its body.
ALTER TABLE submissions ADD COLUMN text_bytes bigint;
