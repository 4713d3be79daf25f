-- `revision` counts every change of a dataset from here on, `columns_revision` those of its columns alone, as `revision`
-- did: jobs and rows are of certain columns, a change is made from the whole definition.

ALTER TABLE datasets ADD COLUMN columns_revision integer NOT NULL DEFAULT 0;
UPDATE datasets SET columns_revision = revision;
