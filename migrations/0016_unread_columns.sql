-- Nothing reads these: the audit log has who changed a policy and when, and is read by its chain.
ALTER TABLE submissions DROP COLUMN body_digest;
ALTER TABLE policies DROP COLUMN changed_at, DROP COLUMN changed_by;
ALTER TABLE release_readers DROP COLUMN first_at;
ALTER TABLE instances DROP COLUMN started_at;
DROP INDEX audit_events_newest;
