-- agent.db, version 8: backups by policy.

-- Which tier of its guest's policy a backup was taken for, and the point of the schedule that it stands for.
ALTER TABLE backup ADD COLUMN tier TEXT CHECK (tier IN ('snapshot', 'local', 'off_site'));
ALTER TABLE backup ADD COLUMN point INTEGER;
-- The key it is encrypted with, by the word of the storage that lists it.
ALTER TABLE backup ADD COLUMN sealed TEXT;
-- Since when its storage answers without listing it.
ALTER TABLE backup ADD COLUMN missing_since INTEGER;

-- One row for each tier that is promised to a guest: since when, and what was begun for the last point of its schedule for
-- which anything was. Written in the transaction that raises the promise, or that opens the operation.
CREATE TABLE tier (
    guest   TEXT NOT NULL,
    tier    TEXT NOT NULL CHECK (tier IN ('snapshot', 'local', 'off_site')),
    since   INTEGER NOT NULL,
    point   INTEGER,
    times   INTEGER NOT NULL DEFAULT 0,
    late    INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER,
    PRIMARY KEY (guest, tier)
) STRICT, WITHOUT ROWID;
INSERT INTO tier (guest, tier, since)
    SELECT guest, key, at FROM protection, json_each(promise, '$.tiers') WHERE key IN ('snapshot', 'local', 'off_site');

-- Counts the changes of the list of backups, so that it is read again only when it is another one.
CREATE TRIGGER backup_comes AFTER INSERT ON backup BEGIN
    INSERT INTO counter (key, value) VALUES ('backups', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER backup_changes AFTER UPDATE ON backup BEGIN
    INSERT INTO counter (key, value) VALUES ('backups', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER backup_goes AFTER DELETE ON backup BEGIN
    INSERT INTO counter (key, value) VALUES ('backups', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1;
END;
