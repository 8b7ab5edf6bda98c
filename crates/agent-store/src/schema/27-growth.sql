-- agent.db, version 27: by how much guests grew, and what operators let them grow by.

-- One row for each operation by which a guest grows, written in the transaction that opens it. Nothing is given back by what
-- comes later; a guest whose making was taken back whole does not count. Rows go after two days.
CREATE TABLE growth (
    operation  TEXT PRIMARY KEY,
    guest      TEXT NOT NULL,
    at         INTEGER NOT NULL,
    part       TEXT NOT NULL,
    cores      INTEGER NOT NULL,
    memory_mib INTEGER NOT NULL,
    swap_mib   INTEGER NOT NULL,
    disk_gib   INTEGER NOT NULL,
    guests     INTEGER NOT NULL,
    volumes    INTEGER NOT NULL,
    passed     TEXT NOT NULL CHECK (passed IN ('budget', 'signed', 'recovery')),
    job        TEXT CHECK ((job IS NULL) = (passed <> 'signed'))
) STRICT, WITHOUT ROWID;
CREATE INDEX growth_at ON growth (at);
CREATE INDEX growth_job ON growth (job, part);

-- One row for each signed job that lets a guest grow.
CREATE TABLE growth_permit (
    job        TEXT PRIMARY KEY,
    guest      TEXT NOT NULL,
    name       TEXT NOT NULL,
    seen       TEXT,
    requested     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
