-- Compositions, deletions and editions read the releases of one dataset.
CREATE INDEX releases_dataset ON releases (dataset_id, id);
