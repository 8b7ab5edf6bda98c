-- How far the records of a host go.
CREATE TABLE guest_audit_ends (
    host     INTEGER PRIMARY KEY REFERENCES hosts (number),
    through  INTEGER NOT NULL
) STRICT;

-- Audit records about guests, as their hosts sent them. A row is never changed; the newest of each guest are kept.
CREATE TABLE guest_audit (
    host         INTEGER NOT NULL REFERENCES hosts (number),
    guest        BLOB NOT NULL CHECK (length(guest) = 16),
    -- In the host's chain. A host that was set back may send another line of the same number.
    number       INTEGER NOT NULL,
    chain        TEXT NOT NULL CHECK (length(chain) = 64),
    received_at  INTEGER NOT NULL,
    record       TEXT NOT NULL CHECK (length(record) BETWEEN 1 AND 40960),
    -- When the epoch of the host ended that it is of; each epoch has numbers of its own.
    ended_at     INTEGER,
    PRIMARY KEY (host, guest, number, chain)
) STRICT, WITHOUT ROWID;

CREATE INDEX guest_audit_by_age ON guest_audit (host, received_at);
