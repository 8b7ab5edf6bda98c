-- How long the operation took that took a backup, in milliseconds. Null where it made something else with it, and while it is
-- under way.
ALTER TABLE backup ADD COLUMN took_ms INTEGER;

UPDATE backup SET took_ms = (SELECT (ended_at - opened_at) / 1000 FROM operation WHERE id = backup.operation)
WHERE operation IN (SELECT id FROM operation WHERE kind IN ('backup', 'quiesced_backup') AND outcome = 'done');
