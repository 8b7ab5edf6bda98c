-- agent.db, version 9: quiesce windows, and what backups hold.

-- One row for each window that was granted; the last ones of a guest are kept.
CREATE TABLE quiesce_window (
    operation   TEXT PRIMARY KEY,
    guest       TEXT NOT NULL,
    -- The window, whole.
    body        TEXT NOT NULL,
    -- By the time of day, for the order alone.
    granted_at  INTEGER NOT NULL,
    -- When its controller last said that everything runs again, or what does not.
    released_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX quiesce_window_guest ON quiesce_window (guest, granted_at);

-- Null for backups that were taken before this version.
ALTER TABLE backup ADD COLUMN label TEXT;

-- A guest may ask for a window. What kinds there are is the program's to know: the text is read into its closed list.
CREATE TABLE request_9 (
    serial   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    guest    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    body     TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'opened', 'refused', 'cancelled', 'preempted')),
    problem  TEXT,
    ended_at INTEGER
) STRICT;
INSERT INTO request_9 SELECT serial, id, guest, kind, body, asked_at, state, problem, ended_at FROM request;
DROP TABLE request;
ALTER TABLE request_9 RENAME TO request;
CREATE INDEX request_queued ON request (serial) WHERE state = 'queued';
CREATE INDEX request_guest ON request (guest, serial);
