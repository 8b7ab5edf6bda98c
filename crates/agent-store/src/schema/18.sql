-- agent.db, version 18: how long backups took to come back when they were tried.

-- What the backup measured then, which its own row does not outlive; and the seconds of the restore and of what came after
-- the start. None where that was not come to, or was before this version.
ALTER TABLE restore_test ADD COLUMN bytes INTEGER;
ALTER TABLE restore_test ADD COLUMN restore_s INTEGER;
ALTER TABLE restore_test ADD COLUMN up_s INTEGER;
