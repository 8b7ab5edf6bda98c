-- agent.db, version 6: the storage targets that operators approved.

-- One row for each name that was ever approved, by the last signature about it; it stays when the target is let go.
CREATE TABLE storage_target (
    name      TEXT PRIMARY KEY,
    -- What was signed for, whole.
    approval  TEXT NOT NULL,
    standing  TEXT NOT NULL CHECK (standing IN ('attached', 'disconnected', 'decommissioned')),
    -- What stands in the marker on the disk: the job by which this disk was first attached under this name.
    mark      TEXT NOT NULL,
    -- When the marker was written, and the durable writes a second that were measured then.
    marked_at INTEGER,
    iops      INTEGER,
    by        TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
