-- agent.db, version 11: snapshots by schedule.

-- A snapshot goes at its time, or, where a schedule took it for a point, by the retention of its tier. Who may ask for one
-- is the program's to know: the text is read into its closed list.
CREATE TABLE snapshot_11 (
    guest      TEXT NOT NULL,
    name       TEXT NOT NULL,
    vmid       INTEGER NOT NULL,
    operation  TEXT NOT NULL UNIQUE,
    taken_by   TEXT NOT NULL,
    taken_at   INTEGER NOT NULL,
    expires_at INTEGER,
    point      INTEGER,
    PRIMARY KEY (guest, name),
    CHECK ((expires_at IS NULL) = (point IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO snapshot_11 SELECT guest, name, vmid, operation, taken_by, taken_at, expires_at, NULL FROM snapshot;
DROP TABLE snapshot;
ALTER TABLE snapshot_11 RENAME TO snapshot;
