-- What operators order from hosts without a signature. `waits` is kept by the program: what an answer to a check-in
-- must carry.
CREATE TABLE work_orders (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    host        INTEGER NOT NULL REFERENCES hosts (number),
    id          BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    guest       TEXT,
    text        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
    operator    TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    cancel_at   INTEGER,
    waits       INTEGER NOT NULL CHECK (waits IN (0, 1)),
    report      TEXT,
    correlation BLOB NOT NULL,
    read_at     INTEGER,
    reading     TEXT
) STRICT;

CREATE INDEX work_orders_of_host ON work_orders (host, number);
CREATE INDEX work_orders_waiting ON work_orders (host, number) WHERE waits = 1;
CREATE INDEX work_orders_pending ON work_orders (expires_at) WHERE state = 'pending';
