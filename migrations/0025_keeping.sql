-- How long each submission of a dataset is kept, and why nothing of a dataset is deleted for now.
ALTER TABLE datasets
    ADD COLUMN submission_retention_days bigint
        GENERATED ALWAYS AS ((definition ->> 'submission_retention_days')::bigint) STORED,
    ADD COLUMN legal_hold_reason text,
    ADD COLUMN legal_hold_since timestamptz,
    ADD CONSTRAINT datasets_legal_hold CHECK (
        num_nulls(legal_hold_reason, legal_hold_since) IN (0, 2)
        AND (deleted_at IS NULL OR legal_hold_since IS NULL));
