-- Restore certificates of guests, with the hub's own signature. A row is never changed; the newest of each guest are kept.
CREATE TABLE restore_certificates (
    host             INTEGER NOT NULL REFERENCES hosts (number),
    guest            BLOB NOT NULL CHECK (length(guest) = 16),
    -- The operation of the restore test: there is one certificate of each.
    test             BLOB NOT NULL CHECK (length(test) = 16),
    tested_at        INTEGER NOT NULL,
    document_sha256  TEXT NOT NULL,
    received_at      INTEGER NOT NULL,
    signed           TEXT NOT NULL CHECK (length(signed) BETWEEN 1 AND 40960),
    PRIMARY KEY (host, guest, test)
) STRICT, WITHOUT ROWID;

CREATE INDEX restore_certificates_by_age ON restore_certificates (host, received_at);
