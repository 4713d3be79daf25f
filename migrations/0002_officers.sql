-- A privacy officer's role, and decisions that can be rejections.

ALTER TABLE tokens DROP CONSTRAINT tokens_role_check;
ALTER TABLE tokens ADD CONSTRAINT tokens_role_check
    CHECK (role IN ('admin', 'holder', 'recipient', 'auditor', 'officer'));
CREATE INDEX tokens_officers ON tokens (organization_id) WHERE role = 'officer' AND revoked_at IS NULL;

-- Releases that a second token of the organization has approved or rejected.
ALTER TABLE release_approvals RENAME COLUMN approved_by TO decided_by;
ALTER TABLE release_approvals RENAME COLUMN approved_at TO decided_at;
ALTER TABLE release_approvals
    ADD COLUMN decision text NOT NULL DEFAULT 'approved' CHECK (decision IN ('approved', 'rejected')),
    ADD COLUMN reason text;
ALTER TABLE release_approvals ALTER COLUMN decision DROP DEFAULT;
