-- Orders of the hub without a signature. One that becomes an operation waits as a request of the same id. `operation` is
-- that request's, or another's that was there for the same. `report` is how it ended; without one it is open.
CREATE TABLE work_order (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    act         TEXT,
    guest       TEXT,
    expires_at  INTEGER NOT NULL,
    taken_at    INTEGER NOT NULL,
    operation   TEXT,
    correlation TEXT,
    refused     INTEGER NOT NULL DEFAULT 0 CHECK (refused IN (0, 1)),
    report      TEXT,
    ended_at    INTEGER,
    reading     TEXT,
    reading_at  INTEGER
) STRICT;
CREATE INDEX work_order_taken ON work_order (taken_at);
CREATE INDEX work_order_open ON work_order (taken_at) WHERE report IS NULL;
CREATE INDEX work_order_operation ON work_order (operation) WHERE operation IS NOT NULL;
