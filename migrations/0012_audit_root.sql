-- Authenticates the ends of all audit logs together, with a key that is not in the database: each end by itself does
-- not show that a whole log was removed, or put back to an end that it once had.
CREATE TABLE audit_root (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    mac     bytea NOT NULL
);
ALTER TABLE audit_root ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_service ON audit_root USING ((SELECT pais_serves_all()));
