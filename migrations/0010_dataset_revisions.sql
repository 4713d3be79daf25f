-- How often a dataset has changed, in all and at the last change of its columns, and how often it had when a job was
-- made: a change applies to the definition that it was checked with, and the steps of a job are those of its columns.

ALTER TABLE datasets ADD COLUMN revision integer NOT NULL DEFAULT 0;
ALTER TABLE datasets ADD COLUMN columns_revision integer NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN dataset_revision integer NOT NULL DEFAULT 0;
