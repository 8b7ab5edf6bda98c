-- agent.db, version 10: backups that were tried.

-- What each test showed. A row comes with what was seen, in the transaction of its step, or with the end of a test that was
-- taken back; it never changes, and outlives the backup.
CREATE TABLE restore_test (
    operation TEXT PRIMARY KEY,
    guest     TEXT NOT NULL,
    archive   TEXT NOT NULL,
    backup    TEXT NOT NULL,
    taken_at  INTEGER NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('proved', 'booted_only', 'failed', 'not_run')),
    why       TEXT NOT NULL,
    began_at  INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX restore_test_of ON restore_test (guest, at);

-- All tests of a box share one lane, which is no guest's. What is held stands in operation_hold alone from now on.
DROP INDEX operation_open;
DROP TRIGGER operation_holds;
CREATE TRIGGER operation_holds AFTER INSERT ON operation BEGIN
    INSERT INTO operation_hold (operation, guest) VALUES (
        NEW.serial,
        CASE NEW.kind WHEN 'restore_test' THEN '00000000-0000-0000-0000-000000000000' ELSE NEW.guest END
    );
END;
