-- A token that its organization makes usable itself: the administrator gets a code, and who sends it
-- gets the secret. Null once that has happened.
ALTER TABLE tokens ADD COLUMN enrolment_sha256 bytea UNIQUE;
ALTER TABLE tokens ADD COLUMN enrolment_expires_at timestamptz;
