-- Times are milliseconds since 1970 UTC. Ids are the 16 bytes of a UUID. Hashes are the 32 bytes of SHA-256.

CREATE TABLE operators (
    name        TEXT PRIMARY KEY,
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    hash        BLOB PRIMARY KEY CHECK (length(hash) = 32),
    operator    TEXT NOT NULL REFERENCES operators (name),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per host ever enrolled. It is small and rewritten by every check-in, so the report stands apart.
CREATE TABLE hosts (
    number               INTEGER PRIMARY KEY,
    id                   BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    name                 TEXT NOT NULL,
    enrolled_at          INTEGER NOT NULL,
    status               TEXT NOT NULL CHECK (status IN ('active', 'frozen', 'revoked')),
    issued_generation    INTEGER NOT NULL,
    used_generation      INTEGER NOT NULL,
    certificate_ends_at  INTEGER NOT NULL,
    liveness             TEXT NOT NULL CHECK (liveness IN ('new', 'online', 'late', 'offline')),
    seen_at              INTEGER,
    farewell_at          INTEGER,
    run_started_at       INTEGER,
    sequence             INTEGER,
    poll_interval_s      INTEGER NOT NULL,
    wanted               INTEGER NOT NULL,
    held                 INTEGER NOT NULL,
    refused              INTEGER,
    agent_version        TEXT,
    guests               INTEGER NOT NULL DEFAULT 0,
    guests_running       INTEGER NOT NULL DEFAULT 0,
    attention_guests     INTEGER NOT NULL DEFAULT 0,
    attention_waiting    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A revoked host gives its name back.
CREATE UNIQUE INDEX hosts_by_name ON hosts (name) WHERE status <> 'revoked';

-- The last report, one column per section, so that a changed section is laid over without reading the others.
CREATE TABLE reports (
    host        INTEGER PRIMARY KEY REFERENCES hosts (number),
    agent       TEXT,
    host_text   TEXT,
    desired     TEXT,
    guests      TEXT,
    operations  TEXT,
    waiting     TEXT
) STRICT;

CREATE TABLE certificates (
    host        INTEGER NOT NULL REFERENCES hosts (number),
    generation  INTEGER NOT NULL,
    spki        BLOB NOT NULL CHECK (length(spki) = 32),
    pem         TEXT NOT NULL,
    not_before  INTEGER NOT NULL,
    not_after   INTEGER NOT NULL,
    PRIMARY KEY (host, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE invites (
    id           BLOB PRIMARY KEY CHECK (length(id) = 16),
    secret_hash  BLOB NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    host_name    TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER,
    used_spki    BLOB,
    used_host    INTEGER REFERENCES hosts (number)
) STRICT, WITHOUT ROWID;

CREATE TABLE enrollment_requests (
    id          BLOB PRIMARY KEY CHECK (length(id) = 16),
    spki        BLOB NOT NULL UNIQUE CHECK (length(spki) = 32),
    spki_der    BLOB NOT NULL,
    claimed_name        TEXT NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'refused')),
    host        INTEGER REFERENCES hosts (number)
) STRICT, WITHOUT ROWID;

CREATE INDEX enrollment_requests_by_time ON enrollment_requests (first_at, id);

CREATE TABLE desired (
    host        INTEGER NOT NULL REFERENCES hosts (number),
    generation  INTEGER NOT NULL,
    content     TEXT NOT NULL,
    author      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    put_at      INTEGER NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (host, generation)
) STRICT;

CREATE TABLE events (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    host         BLOB,
    actor        TEXT,
    correlation  BLOB NOT NULL,
    message      TEXT NOT NULL
) STRICT;

CREATE TABLE idempotency (
    operator    TEXT NOT NULL,
    key         TEXT NOT NULL,
    request     BLOB NOT NULL CHECK (length(request) = 32),
    answer      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (operator, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_time ON idempotency (at);

-- How far the events were forwarded. One row.
CREATE TABLE webhook (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    passed  INTEGER NOT NULL
) STRICT;

INSERT INTO webhook (one, passed) VALUES (1, 0);
