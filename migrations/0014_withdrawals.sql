-- A withdrawn release keeps its metadata; its tables and its report are served to nobody.
ALTER TABLE releases ADD COLUMN withdrawn_at timestamptz;
ALTER TABLE releases ADD COLUMN withdrawn_reason text;
ALTER TABLE releases ADD CONSTRAINT releases_withdrawal
    CHECK ((withdrawn_at IS NULL) = (withdrawn_reason IS NULL));
