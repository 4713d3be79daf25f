-- How often the columns of a dataset have changed, and how often they had when a job was made: the steps of a job
-- are those of its columns.

ALTER TABLE datasets ADD COLUMN revision integer NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN dataset_revision integer NOT NULL DEFAULT 0;
