-- The rows of a deleted submission are removed after the deletion, in small transactions.
ALTER TABLE submission_chunks DROP CONSTRAINT submission_chunks_submission_id_fkey;
