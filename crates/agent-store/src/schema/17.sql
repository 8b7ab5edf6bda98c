-- agent.db, version 17: the hardware address under which a lost guest may come back.

-- That of the guest's first network when the backup was taken.
ALTER TABLE backup ADD COLUMN hardware TEXT;
