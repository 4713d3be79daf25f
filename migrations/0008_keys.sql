-- The wrapped data keys are outside this table, where they can be destroyed: in files, or in
-- `dataset_keys`. `wrapped_key` has those of an earlier version until the start of the service has
-- moved them (src/store/moving_of_old_keys.rs).
ALTER TABLE datasets DROP CONSTRAINT datasets_check;
ALTER TABLE datasets ADD CHECK (deleted_at IS NULL OR wrapped_key IS NULL);

-- Null for a deleted dataset whose key could not be destroyed yet.
ALTER TABLE datasets ADD COLUMN key_destroyed_at timestamptz;
UPDATE datasets SET key_destroyed_at = deleted_at WHERE deleted_at IS NOT NULL;

-- Small, so that it can be rewritten whenever a key is destroyed.
CREATE TABLE dataset_keys (
    dataset_id  uuid PRIMARY KEY,
    wrapped_key bytea NOT NULL
);

-- One row: which key-encryption key wraps the data keys now, and the service's own key under it.
CREATE TABLE service_keys (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    key_id      bytea NOT NULL,
    wrapped_key bytea NOT NULL
);
