-- Whether the rows of a submission are sealed with a key of their own, which is destroyed when the
-- submission is deleted. It is kept with the keys of datasets, in `dataset_keys` by the id of the
-- submission, and is sealed with the key of its dataset.
ALTER TABLE submissions ADD COLUMN has_key boolean NOT NULL DEFAULT false;

-- Submissions that are deleted, and whose key is still to be destroyed.
CREATE TABLE keys_to_destroy (
    submission_id uuid PRIMARY KEY
);
