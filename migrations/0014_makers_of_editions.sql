-- The token that sent the rows of a submission, and the token that last set the recipients of a publication:
-- neither approves its editions. Null for submissions from before, and for recipients that were never changed.
ALTER TABLE submissions ADD COLUMN created_by uuid;
ALTER TABLE publications ADD COLUMN recipients_by uuid;
