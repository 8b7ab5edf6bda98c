-- agent.db, version 2: what operations on guests leave behind.

-- Snapshots that the agent took and that stand. A row comes with the outcome of the step that took it, and goes with the
-- outcome of the step that removed it.
CREATE TABLE snapshot (
    guest      TEXT NOT NULL,
    name       TEXT NOT NULL,
    vmid       INTEGER NOT NULL,
    operation  TEXT NOT NULL UNIQUE,
    taken_by   TEXT NOT NULL CHECK (taken_by IN ('guest', 'agent', 'job')),
    taken_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (guest, name)
) STRICT, WITHOUT ROWID;

-- Backups that the agent took and found afterwards.
CREATE TABLE backup (
    volid     TEXT PRIMARY KEY,
    guest     TEXT NOT NULL,
    vmid      INTEGER NOT NULL,
    storage   TEXT NOT NULL,
    bytes     INTEGER NOT NULL,
    taken_at  INTEGER NOT NULL,
    operation TEXT NOT NULL,
    why       TEXT NOT NULL CHECK (why IN ('first', 'schedule', 'asked'))
) STRICT, WITHOUT ROWID;
CREATE INDEX backup_guest ON backup (guest, taken_at);

-- Parked operations that a person ended. Why, and who, stands in the journal and in the audit.
CREATE TABLE forgotten (
    operation INTEGER PRIMARY KEY REFERENCES operation (serial),
    at        INTEGER NOT NULL
) STRICT;

-- What was planned at the last starts of the agent, kept before it was run.
CREATE TABLE recovery (
    serial INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    lines  INTEGER NOT NULL,
    body   TEXT NOT NULL
) STRICT;

-- From when on the starts of a guest count against it: it was healthy then, or a person forgave it.
CREATE TABLE starts_forgiven (
    guest TEXT PRIMARY KEY,
    at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the brake counts: operations of some kinds within a window.
CREATE INDEX operation_kind ON operation (kind, opened_at);
-- The operation that destroyed a guest by a signature. Such a guest is nowhere, and is not made again under its uid.
ALTER TABLE guest ADD COLUMN gone_by TEXT;

-- What guests asked for through their local API. A request's id becomes its operation's id, so one request has at most
-- one operation; every change of its state is a compare-and-swap on 'queued'.
CREATE TABLE request (
    serial   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    guest    TEXT NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('snapshot', 'expire_snapshot', 'roll_back', 'backup')),
    body     TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'opened', 'refused', 'cancelled', 'preempted')),
    problem  TEXT,
    ended_at INTEGER
) STRICT;
CREATE INDEX request_queued ON request (serial) WHERE state = 'queued';
CREATE INDEX request_guest ON request (guest, serial);

-- Signed jobs that were taken. Id and nonce are used up here, before anything else is done for the job; a job's
-- operation has the job's id. Every change of its state is a compare-and-swap.
CREATE TABLE job (
    id         TEXT PRIMARY KEY,
    nonce      TEXT NOT NULL UNIQUE,
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    blob       TEXT NOT NULL,
    verb       TEXT NOT NULL,
    guest      TEXT,
    signers    TEXT NOT NULL,
    taken_at   INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('waiting', 'under_way', 'done', 'failed', 'cancelled')),
    problem    TEXT,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX job_open ON job (due_at) WHERE state = 'waiting';
CREATE INDEX job_taken ON job (taken_at);

-- Operators and policies, the highest version in use; laid down by root, or by a signed job.
CREATE TABLE roster (
    version   INTEGER PRIMARY KEY,
    operators TEXT NOT NULL,
    policy    TEXT NOT NULL,
    at        INTEGER NOT NULL,
    by        TEXT NOT NULL
) STRICT;

-- Which life of this file it is, and the highest audit number of an earlier life that was heard of. One row.
CREATE TABLE life (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    heard INTEGER NOT NULL
) STRICT;

-- Copies of guests that were restored restored_copy them. A row comes with the number, and goes when the operation was taken
-- back or ended by a person, or when the copy was seen to be gone.
CREATE TABLE restored_copy (
    operation TEXT PRIMARY KEY,
    guest     TEXT NOT NULL,
    name      TEXT NOT NULL,
    vmid      INTEGER NOT NULL UNIQUE,
    archive   TEXT NOT NULL,
    stage     TEXT NOT NULL CHECK (stage IN ('making', 'made')),
    volumes   TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;

-- Which guests an operation holds: most hold one, handing a volume over holds two. One mutating operation per guest (I6)
-- holds for each of them, whatever the program does. The first guest's rows follow the operation's by themselves.
CREATE TABLE operation_hold (
    operation INTEGER NOT NULL REFERENCES operation (serial),
    guest     TEXT NOT NULL,
    ended     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (operation, guest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX operation_hold_open ON operation_hold (guest) WHERE ended = 0;
INSERT INTO operation_hold (operation, guest, ended) SELECT serial, guest, ended_at IS NOT NULL FROM operation;
CREATE TRIGGER operation_holds AFTER INSERT ON operation BEGIN
    INSERT INTO operation_hold (operation, guest) VALUES (NEW.serial, NEW.guest);
END;
CREATE TRIGGER operation_lets_go AFTER UPDATE OF ended_at ON operation BEGIN
    UPDATE operation_hold SET ended = (NEW.ended_at IS NOT NULL) WHERE operation = NEW.serial;
END;
