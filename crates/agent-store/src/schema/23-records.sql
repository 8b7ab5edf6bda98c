-- agent.db, version 23: bounds for what grows.

-- How often each guest asked for what, by the hour. Hours that are over for more than a day go.
CREATE TABLE asked (
    guest TEXT NOT NULL,
    kind  TEXT NOT NULL,
    -- Hours since 1970.
    hour  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (guest, kind, hour)
) STRICT, WITHOUT ROWID;

-- An ended operation as it is told, as JSON, once its events are gone. None while it has them.
ALTER TABLE operation ADD COLUMN kept TEXT;
CREATE INDEX operation_compacted ON operation (ended_at) WHERE kept IS NULL;
CREATE INDEX operation_ended ON operation (ended_at);

-- Parts of the audit that lie in files: lines `first` to `last`, of which the line before `first` has the hash `before`, and
-- `last` the hash `chain`. A part that was removed keeps its row.
CREATE TABLE audit_segment (
    first      INTEGER PRIMARY KEY,
    last       INTEGER NOT NULL,
    before     BLOB NOT NULL,
    chain      BLOB NOT NULL,
    -- When its last line was written, in microseconds since 1970.
    ended_at   INTEGER NOT NULL,
    file       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    removed_at INTEGER
) STRICT;
