-- The end of the part of each log that was archived and removed. The rest continues from its hash, which
-- is authenticated like the end of the log.
CREATE TABLE audit_archives (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    seq             bigint NOT NULL,
    hash            bytea NOT NULL,
    mac             bytea NOT NULL,
    archived_at     timestamptz NOT NULL
);
ALTER TABLE audit_archives ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_organization ON audit_archives FOR SELECT USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
