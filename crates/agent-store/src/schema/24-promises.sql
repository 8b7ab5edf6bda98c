-- agent.db, version 24: promises that were raised, and how long their backups take.

-- How long the last backup of the tier took that came to something, in microseconds.
ALTER TABLE tier ADD COLUMN took INTEGER;
-- The schedule and consistency that were promised before a document raised them, as JSON, and when that was. They stay due
-- until what is promised now has produced a backup.
ALTER TABLE tier ADD COLUMN earlier TEXT;
ALTER TABLE tier ADD COLUMN earlier_until INTEGER;
