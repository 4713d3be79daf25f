-- A second wall between organizations, under the handlers: PostgreSQL shows a request the rows of its
-- organization alone. The service says at the begin of each piece of work for whom it is, in two
-- settings of the connection: `pais.scope` (`service`, `administration` or `organization`) and
-- `pais.organization`. Where they are not set, no row is shown.
CREATE FUNCTION pais_serves_all() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('pais.scope', true) = 'service', false)
$$;
CREATE FUNCTION pais_administers() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('pais.scope', true) IN ('service', 'administration'), false)
$$;
CREATE FUNCTION pais_organization() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT nullif(current_setting('pais.organization', true), '')::uuid
$$;

-- The owner of the tables, who makes backups, is not bound; the service works under another role. The
-- functions are called in sub-selects, so that they run once for each statement and not for each row.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'tokens', 'audit_events', 'audit_chain', 'audit_heads', 'idempotent_answers', 'taxonomies',
        'trees', 'dataset_trees', 'datasets', 'submissions', 'submission_chunks', 'jobs', 'job_steps',
        'job_runs', 'releases', 'release_tables', 'release_chunks', 'release_sources',
        'release_approvals', 'release_readers', 'grants', 'policies'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY[
        'audit_chain', 'idempotent_answers', 'taxonomies', 'trees', 'dataset_trees', 'datasets', 'jobs',
        'policies'
    ] LOOP
        EXECUTE format(
            'CREATE POLICY of_organization ON %I USING (
                (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()))', name);
    END LOOP;
END $$;

CREATE POLICY of_organization ON tokens USING (
    (SELECT pais_administers()) OR organization_id = (SELECT pais_organization()));

-- The fetch of a release is an event in the log of its holder.
CREATE POLICY of_organization ON audit_events FOR SELECT USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY by_everybody ON audit_events FOR INSERT WITH CHECK (true);

CREATE POLICY of_service ON audit_heads USING ((SELECT pais_serves_all()));

CREATE POLICY of_dataset ON submissions USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM datasets d WHERE d.id = dataset_id));
CREATE POLICY of_submission ON submission_chunks USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM submissions s WHERE s.id = submission_id));
CREATE POLICY of_job ON job_steps USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM jobs j WHERE j.id = job_id));
CREATE POLICY of_job ON job_runs USING (
    (SELECT pais_serves_all()) OR EXISTS (SELECT FROM jobs j WHERE j.id = job_id));

-- A recipient sees the releases that it was granted. A grant carries the holder of its release: a
-- policy of grants that looks at releases would refer to itself.
ALTER TABLE grants ADD COLUMN organization_id uuid REFERENCES organizations;
UPDATE grants g SET organization_id = r.organization_id FROM releases r WHERE r.id = g.release_id;
ALTER TABLE grants ALTER COLUMN organization_id SET NOT NULL;
CREATE POLICY of_holder ON grants USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY of_recipient ON grants FOR SELECT USING (recipient_id = (SELECT pais_organization()));

CREATE POLICY of_holder ON releases USING (
    (SELECT pais_serves_all()) OR organization_id = (SELECT pais_organization()));
CREATE POLICY of_recipient ON releases FOR SELECT USING (EXISTS (
    SELECT FROM grants g
    WHERE g.release_id = releases.id AND g.recipient_id = (SELECT pais_organization())));

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'release_tables', 'release_chunks', 'release_sources', 'release_approvals', 'release_readers'
    ] LOOP
        EXECUTE format(
            'CREATE POLICY of_holder ON %I USING (
                (SELECT pais_serves_all()) OR EXISTS (
                    SELECT FROM releases r
                    WHERE r.id = release_id AND r.organization_id = (SELECT pais_organization())))',
            name);
    END LOOP;
    -- Which raw rows a release was made from is for its holder alone.
    FOREACH name IN ARRAY ARRAY['release_tables', 'release_chunks', 'release_approvals'] LOOP
        EXECUTE format(
            'CREATE POLICY of_recipient ON %I FOR SELECT USING (
                EXISTS (SELECT FROM releases r WHERE r.id = release_id))', name);
    END LOOP;
END $$;

-- A recipient says that it has fetched a release.
CREATE POLICY of_recipient ON release_readers FOR SELECT USING (
    recipient_id = (SELECT pais_organization()));
CREATE POLICY by_recipient ON release_readers FOR INSERT WITH CHECK (
    recipient_id = (SELECT pais_organization())
    AND EXISTS (SELECT FROM releases r WHERE r.id = release_id));

-- Whether a grant takes effect depends on the policy of the holder.
CREATE POLICY of_recipient ON policies FOR SELECT USING (EXISTS (
    SELECT FROM grants g
    WHERE g.organization_id = policies.organization_id
          AND g.recipient_id = (SELECT pais_organization())));
