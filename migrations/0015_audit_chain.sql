-- The chain of hashes over the audit log of each organization. An event is chained within about a
-- second after its commit, so that requests do not wait for each other's place in the chain.
CREATE TABLE audit_chain (
    organization_id uuid NOT NULL REFERENCES organizations,
    seq             bigint NOT NULL,
    event_id        uuid NOT NULL UNIQUE REFERENCES audit_events,
    hash            bytea NOT NULL,
    PRIMARY KEY (organization_id, seq)
);

-- The last link of each chain, authenticated with a key that is not in the database: without it the
-- end of a chain could be cut off unnoticed.
CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    seq             bigint NOT NULL,
    hash            bytea NOT NULL,
    mac             bytea NOT NULL
);

-- The events that have no place in a chain yet.
CREATE TABLE audit_pending (
    event_id uuid PRIMARY KEY REFERENCES audit_events
);
INSERT INTO audit_pending SELECT id FROM audit_events;

CREATE FUNCTION audit_event_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_pending VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_events_pending AFTER INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_event_pending();

-- Events and links are only added.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
CREATE TRIGGER audit_chain_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
