-- Signed releases, as operators left them. The hub checks their form and no signature.
CREATE TABLE releases (
    version          TEXT PRIMARY KEY,
    manifest_sha256  TEXT NOT NULL CHECK (length(manifest_sha256) = 64),
    issued_at        INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    signatures       INTEGER NOT NULL,
    operator         TEXT NOT NULL,
    put_at           INTEGER NOT NULL,
    signed           TEXT NOT NULL CHECK (length(signed) BETWEEN 1 AND 131072)
) STRICT;

-- Their files. The bytes are in the folder `artifacts`, by digest; what is there is told by the folder alone.
CREATE TABLE release_files (
    version     TEXT NOT NULL REFERENCES releases (version) ON DELETE CASCADE,
    -- In the manifest, from 0.
    place       INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    sha256      TEXT NOT NULL CHECK (length(sha256) = 64),
    size_bytes  INTEGER NOT NULL CHECK (size_bytes > 0),
    PRIMARY KEY (version, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX release_files_by_digest ON release_files (sha256);
