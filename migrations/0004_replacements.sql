-- Submissions that take the place of others.

-- The submission that has taken its place: of the same dataset, written in the transaction that stores
-- that one. No reference, because either can be deleted, and neither deletion changes the other: a
-- replaced submission stays replaced when its successor is deleted.
ALTER TABLE submissions ADD COLUMN replaced_by uuid;
CREATE UNIQUE INDEX submissions_replaced_by ON submissions (replaced_by)
    WHERE replaced_by IS NOT NULL;
