-- Trees are stored once for each organization, under the SHA-256 of their text. Taxonomies and the
-- columns of datasets refer to them.
CREATE TABLE trees (
    organization_id uuid NOT NULL REFERENCES organizations,
    sha256          bytea NOT NULL,
    root            jsonb NOT NULL,
    PRIMARY KEY (organization_id, sha256)
);

-- The tree of a column; `position` is that of the column in the definition, from 0.
CREATE TABLE dataset_trees (
    dataset_id      uuid NOT NULL REFERENCES datasets,
    position        integer NOT NULL,
    organization_id uuid NOT NULL,
    sha256          bytea NOT NULL,
    PRIMARY KEY (dataset_id, position),
    FOREIGN KEY (organization_id, sha256) REFERENCES trees
);
CREATE INDEX dataset_trees_tree ON dataset_trees (organization_id, sha256);

-- Taxonomies and datasets of an earlier version have their trees in themselves.
CREATE TEMPORARY TABLE old_trees ON COMMIT DROP AS
SELECT t.organization_id, t.id AS taxonomy_id, NULL::uuid AS dataset_id, 0 AS position, t.root
FROM taxonomies t
UNION ALL
SELECT d.organization_id, NULL, d.id, (c.position - 1)::integer,
       CASE jsonb_typeof(c.declared -> 'taxonomy')
           WHEN 'object' THEN c.declared -> 'taxonomy'
           WHEN 'string' THEN d.definition -> 'trees' -> (c.declared ->> 'taxonomy')
       END
FROM datasets d,
     jsonb_array_elements(d.definition -> 'definition' -> 'columns')
         WITH ORDINALITY AS c (declared, position)
WHERE d.definition IS NOT NULL;
DELETE FROM old_trees WHERE root IS NULL;

INSERT INTO trees (organization_id, sha256, root)
SELECT organization_id, sha256(convert_to(root::text, 'UTF8')), root FROM old_trees
ON CONFLICT DO NOTHING;
INSERT INTO dataset_trees (dataset_id, position, organization_id, sha256)
SELECT dataset_id, position, organization_id, sha256(convert_to(root::text, 'UTF8'))
FROM old_trees WHERE dataset_id IS NOT NULL;

ALTER TABLE taxonomies ADD COLUMN tree_sha256 bytea;
UPDATE taxonomies t SET tree_sha256 = sha256(convert_to(t.root::text, 'UTF8'));
ALTER TABLE taxonomies ALTER COLUMN tree_sha256 SET NOT NULL;
ALTER TABLE taxonomies ADD FOREIGN KEY (organization_id, tree_sha256) REFERENCES trees;
ALTER TABLE taxonomies DROP COLUMN root;
CREATE INDEX taxonomies_tree ON taxonomies (organization_id, tree_sha256);

-- From now on `definition` is the definition as declared, without inline trees.
UPDATE datasets d SET definition = jsonb_set(
    d.definition -> 'definition', '{columns}',
    (SELECT coalesce(
         jsonb_agg(
             CASE jsonb_typeof(c.declared -> 'taxonomy')
                 WHEN 'object' THEN c.declared - 'taxonomy'
                 ELSE c.declared
             END
             ORDER BY c.position),
         '[]')
     FROM jsonb_array_elements(d.definition -> 'definition' -> 'columns')
         WITH ORDINALITY AS c (declared, position)))
WHERE d.definition IS NOT NULL;

-- What lists show, so that they read no definition.
ALTER TABLE datasets
    ADD COLUMN description text GENERATED ALWAYS AS (definition ->> 'description') STORED,
    ADD COLUMN columns integer
        GENERATED ALWAYS AS (jsonb_array_length(definition -> 'columns')) STORED,
    ADD COLUMN retention_days bigint
        GENERATED ALWAYS AS ((definition ->> 'retention_days')::bigint) STORED;
