-- agent.db, version 14: recovery codes, and the wrapped keys that they open.

-- One row for each number that was ever given to a code; a number is given once. The code itself is nowhere.
CREATE TABLE escrow (
    code       INTEGER PRIMARY KEY,
    -- Whose off-site backups the key is of.
    target     TEXT NOT NULL,
    -- What the wrapped key is for, and which key it is: `Record`.
    record     TEXT NOT NULL,
    begun_at   INTEGER NOT NULL,
    -- Noted before the words are shown.
    shown_at   INTEGER,
    -- Set with the file, once the words were typed back.
    kept_at    INTEGER,
    file       TEXT,
    -- Counted over all files in the order in which they were kept: by this the hub knows it.
    version    INTEGER UNIQUE,
    -- When the words last opened it.
    drilled_at INTEGER,
    -- When it was given up for a newer one; its file is gone then.
    retired_at INTEGER,
    CHECK ((kept_at IS NOT NULL AND retired_at IS NULL) = (file IS NOT NULL)),
    CHECK ((kept_at IS NULL) = (version IS NULL)),
    CHECK (kept_at IS NULL OR shown_at IS NOT NULL),
    CHECK (retired_at IS NULL OR kept_at IS NOT NULL)
) STRICT;

-- How each copy of a kept file stood when it was last looked at.
CREATE TABLE escrow_copy (
    code    INTEGER NOT NULL,
    place   TEXT NOT NULL,
    -- Why it is not as it should be; null where it is.
    problem TEXT,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (code, place)
) STRICT, WITHOUT ROWID;
