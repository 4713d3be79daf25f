-- What a recipient needs to resolve the labels of the release (pais_core::codebook). Null for a
-- release of an earlier version.
ALTER TABLE releases ADD COLUMN codebook jsonb;
