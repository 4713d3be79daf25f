-- Since when nobody may act for an organization; null while people may.
ALTER TABLE organizations ADD COLUMN disabled_at timestamptz;
