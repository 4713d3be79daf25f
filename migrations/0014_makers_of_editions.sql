-- Who sent the rows of a submission, and who last chose the recipients of a publication: they do not approve
-- its editions. Null for submissions from before, and while the recipients are those of the publication's
-- creation.
ALTER TABLE submissions ADD COLUMN created_by uuid;
ALTER TABLE publications ADD COLUMN recipients_by uuid;
