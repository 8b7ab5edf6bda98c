-- agent.db, version 25: what signed orders allow, and what was used of it.

-- One row for each guest and operation that a signed release lets pass the brake, under one document.
CREATE TABLE brake_release (
    job        TEXT NOT NULL,
    generation INTEGER NOT NULL,
    document   TEXT NOT NULL,
    guest      TEXT NOT NULL,
    operation  TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (job, guest, operation)
) STRICT, WITHOUT ROWID;
CREATE INDEX brake_release_guest ON brake_release (guest, operation);

-- Which operation a release was used for. One that was taken back whole uses nothing up.
CREATE TABLE brake_release_use (
    operation TEXT PRIMARY KEY,
    job       TEXT NOT NULL,
    guest     TEXT NOT NULL,
    kind      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX brake_release_use_job ON brake_release_use (job, guest, kind);

-- Orders to restore this host that operators took back. Kept for good: such an order has no end here.
CREATE TABLE withdrawn_order (
    digest TEXT PRIMARY KEY,
    job    TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
