-- When a refused use of the token was last recorded in the audit log: at most once a minute.
ALTER TABLE tokens ADD COLUMN refusal_recorded_at timestamptz;
