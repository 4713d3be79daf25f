-- A person who signs in with an issuer acts through a token without a secret that anybody knows: it
-- is in events and approvals, and can be revoked, as any other.
ALTER TABLE tokens ADD COLUMN oidc_subject text;
CREATE UNIQUE INDEX tokens_person ON tokens (organization_id, role, oidc_subject)
    WHERE oidc_subject IS NOT NULL;
CREATE INDEX tokens_oidc_subject ON tokens (oidc_subject) WHERE oidc_subject IS NOT NULL;
