-- How people sign in. Passwords are Argon2id; secrets of authenticators are sealed with a key of the hub's folder, and
-- recovery codes are hashed with one. A session's token is in its cookie alone.
CREATE TABLE passwords (
    operator    TEXT PRIMARY KEY REFERENCES operators (name),
    hash        TEXT NOT NULL,
    set_at      INTEGER NOT NULL
) STRICT;

-- `sealed` is in use; `pending` is not confirmed yet.
CREATE TABLE authenticators (
    operator    TEXT PRIMARY KEY REFERENCES operators (name),
    sealed      BLOB,
    since       INTEGER,
    last_step   INTEGER,
    pending     BLOB,
    CHECK ((sealed IS NULL) = (since IS NULL))
) STRICT;

CREATE TABLE recovery_codes (
    operator    TEXT NOT NULL REFERENCES operators (name),
    hash        BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (operator, hash)
) STRICT;

CREATE TABLE sign_in_links (
    hash        BLOB PRIMARY KEY CHECK (length(hash) = 32),
    operator    TEXT NOT NULL REFERENCES operators (name),
    kind        TEXT NOT NULL CHECK (kind IN ('full', 'setup')),
    expires_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    hash          BLOB PRIMARY KEY CHECK (length(hash) = 32),
    id            BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    operator      TEXT NOT NULL REFERENCES operators (name),
    kind          TEXT NOT NULL CHECK (kind IN ('full', 'setup')),
    made_at       INTEGER NOT NULL,
    used_at       INTEGER NOT NULL,
    idle_ends_at  INTEGER NOT NULL,
    ends_at       INTEGER NOT NULL,
    address       TEXT NOT NULL,
    user_agent    TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_of_operator ON sessions (operator, made_at);
