-- agent.db, version 12: which mounts a backup holds.

-- Null for backups that were taken before this version.
ALTER TABLE backup ADD COLUMN mounts TEXT;
