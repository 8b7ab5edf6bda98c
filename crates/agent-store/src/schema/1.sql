-- agent.db, version 1. Times are microseconds since 1970. Every change of this file is a new version with its own step.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters never fall (I11): starts since the last good cycle is the one exception, and says so by its name.
CREATE TABLE counter (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE desired (
    generation  INTEGER PRIMARY KEY,
    content     TEXT NOT NULL,
    document    TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    good_at     INTEGER
) STRICT;

CREATE TABLE guest (
    uid              TEXT PRIMARY KEY,
    name             TEXT NOT NULL,
    customer         TEXT NOT NULL,
    golden           TEXT NOT NULL,
    place            TEXT NOT NULL CHECK (place IN ('nowhere', 'making', 'made')),
    vmid             INTEGER UNIQUE,
    made_by          TEXT,
    volumes          TEXT NOT NULL DEFAULT '[]',
    access           TEXT NOT NULL DEFAULT 'open' CHECK (access IN ('open', 'frozen')),
    token_hash       BLOB UNIQUE,
    token_generation INTEGER NOT NULL DEFAULT 0,
    claim_hash       BLOB UNIQUE,
    claim_expires_at INTEGER,
    claim_state      TEXT NOT NULL DEFAULT 'none' CHECK (claim_state IN ('none', 'set', 'used')),
    claim_redeemer   BLOB,
    hello_version    TEXT,
    hello_health     TEXT,
    hello_boot_id    TEXT,
    hello_at         INTEGER
) STRICT, WITHOUT ROWID;

-- A VMID once reserved for a guest of ours is never given to another.
CREATE TABLE used_vmid (
    vmid INTEGER PRIMARY KEY,
    uid  TEXT NOT NULL
) STRICT;

CREATE TABLE operation (
    serial     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    guest      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    spec       TEXT NOT NULL,
    generation INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    ended_at   INTEGER,
    outcome    TEXT CHECK (outcome IN ('done', 'undone', 'parked')),
    message    TEXT
) STRICT;
-- One mutating operation per guest (I6), whatever the program does.
CREATE UNIQUE INDEX operation_open ON operation (guest) WHERE ended_at IS NULL;
CREATE INDEX operation_guest ON operation (guest, serial);

CREATE TABLE event (
    operation INTEGER NOT NULL REFERENCES operation (serial),
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (operation, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    guest  TEXT NOT NULL,
    key    TEXT NOT NULL,
    body   BLOB NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (guest, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    number    INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    action    TEXT NOT NULL,
    guest     TEXT,
    operation TEXT,
    detail    TEXT NOT NULL,
    chain     BLOB NOT NULL
) STRICT;
