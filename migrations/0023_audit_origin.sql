-- From which address an action was asked for, and whether it was done or refused. Both are part of what
-- is chained.
ALTER TABLE audit_events ADD COLUMN address text;
ALTER TABLE audit_events ADD COLUMN outcome text NOT NULL DEFAULT 'done'
    CHECK (outcome IN ('done', 'refused'));
