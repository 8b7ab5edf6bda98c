-- Certificates of a host before this number belong to a box that was replaced.
ALTER TABLE hosts ADD COLUMN restored_from INTEGER NOT NULL DEFAULT 0;

-- Invites that let a new box take a host's place, with the operators' order, which the hub passes on and cannot make.
CREATE TABLE restores (
    id           BLOB PRIMARY KEY CHECK (length(id) = 16),
    secret_hash  BLOB NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    host         INTEGER NOT NULL REFERENCES hosts (number),
    signed_job   TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER,
    used_spki    BLOB,
    generation   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX restores_by_host ON restores (host, generation);
