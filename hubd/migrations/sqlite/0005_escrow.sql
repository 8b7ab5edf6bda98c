-- Wrapped backup keys, in versions. A row is never changed but for opened_at; which may go is decided in domain/escrow.
CREATE TABLE escrows (
    host         INTEGER NOT NULL REFERENCES hosts (number),
    number       INTEGER NOT NULL,
    file         BLOB NOT NULL CHECK (length(file) BETWEEN 1 AND 4096),
    customer     TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    code         INTEGER NOT NULL,
    fingerprint  TEXT NOT NULL,
    made_at      INTEGER NOT NULL,
    kept_at      INTEGER NOT NULL,
    opened_at    INTEGER,
    PRIMARY KEY (host, number)
) STRICT;

-- How often a host did what within the hour that began then.
CREATE TABLE escrow_rate (
    host   INTEGER NOT NULL REFERENCES hosts (number),
    act    TEXT NOT NULL,
    since  INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (host, act)
) STRICT, WITHOUT ROWID;

-- Reads that customers are told of. Written in the transaction of the read.
CREATE TABLE notices (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    customer     TEXT NOT NULL,
    host         BLOB NOT NULL CHECK (length(host) = 16),
    correlation  BLOB NOT NULL,
    body         TEXT NOT NULL,
    done_at      INTEGER
) STRICT;

CREATE INDEX notices_open ON notices (customer, number) WHERE done_at IS NULL;
