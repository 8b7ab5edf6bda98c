-- agent.db, version 3: what operators approved, and what is known of controllers.

-- Code that operators let see customers' data by their signatures: exactly these bytes under this version.
CREATE TABLE release (
    kind    TEXT NOT NULL CHECK (kind IN ('controller', 'golden')),
    version TEXT NOT NULL,
    sha256  TEXT NOT NULL CHECK (length(sha256) = 64),
    by      TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (kind, version, sha256)
) STRICT, WITHOUT ROWID;

-- What the controller's program hashes to, by its own word.
ALTER TABLE guest ADD COLUMN hello_build TEXT CHECK (hello_build IS NULL OR length(hello_build) = 64);
