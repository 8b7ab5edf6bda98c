-- agent.db, version 4: what each guest is promised about its backups.

-- The promise in force, whole, as JSON. Raised by a document, lowered only by a signed job; never deleted.
CREATE TABLE protection (
    guest   TEXT PRIMARY KEY,
    promise TEXT NOT NULL,
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
