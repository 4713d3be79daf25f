-- Base editions: those whose cut later editions continue.

-- Whether the edition continues the cut of no earlier one; null until its job has decided.
ALTER TABLE editions ADD COLUMN is_base boolean;

-- Until now all editions have continued the cut of the first published one. Without a single cut, each
-- has labels of its own.
UPDATE editions e SET is_base = r.cut IS NULL OR NOT EXISTS (
    SELECT FROM editions o
    WHERE o.publication_id = e.publication_id AND o.number < e.number AND o.status = 'published')
FROM releases r WHERE r.id = e.release_id;

ALTER TABLE editions ADD CHECK (status <> 'published' OR is_base IS NOT NULL);
