-- What a test checked, one by one. Null for tests that did not prove their backup, and from before this version.
ALTER TABLE restore_test ADD COLUMN checks TEXT;

-- The newest restore certificate of each guest. Of one test there is one for good: it is signed once, and sent until the
-- hub has it.
CREATE TABLE restore_certificate (
    guest        TEXT PRIMARY KEY,
    -- The operation of the restore test.
    test         TEXT NOT NULL,
    tested_at    INTEGER NOT NULL,
    issued_at    INTEGER NOT NULL,
    -- The document with the host's signature, as it is sent.
    signed       TEXT NOT NULL,
    delivered_at INTEGER
) STRICT, WITHOUT ROWID;
