-- agent.db, version 19: where the disks of a lost guest are made again.

-- Those of the guest when the backup was taken, as a JSON object.
ALTER TABLE backup ADD COLUMN disks TEXT;
