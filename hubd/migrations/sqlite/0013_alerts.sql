-- What the alert engine keeps. A scope is 'hub', or the id of a host. Columns named `body` hold the engine's own JSON.

CREATE TABLE alert_scopes (
    scope  TEXT PRIMARY KEY,
    body   TEXT NOT NULL,
    -- When the engine has something to do by itself.
    due    INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_scopes_by_due ON alert_scopes (due) WHERE due IS NOT NULL;

CREATE TABLE alert_incidents (
    scope   TEXT NOT NULL,
    number  INTEGER NOT NULL,
    source  TEXT NOT NULL CHECK (source IN ('agent', 'hub', 'liveness')),
    phase   TEXT NOT NULL CHECK (phase IN ('pending', 'firing', 'resolved')),
    body    TEXT NOT NULL,
    PRIMARY KEY (scope, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_incidents_by_phase ON alert_incidents (phase, scope, number);

CREATE TABLE alert_groups (
    scope  TEXT NOT NULL,
    key    TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_log (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    scope     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    incident  INTEGER,
    body      TEXT NOT NULL
) STRICT;

CREATE INDEX alert_log_by_scope ON alert_log (scope, number);

CREATE TABLE alert_silences (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    until     INTEGER NOT NULL,
    ended_at  INTEGER,
    ended_by  TEXT,
    body      TEXT NOT NULL
) STRICT;

-- Notices that no receiver has yet.
CREATE TABLE alert_outbox (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    receiver    TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'sending')),
    tries       INTEGER NOT NULL DEFAULT 0,
    failure     TEXT,
    body        TEXT NOT NULL
) STRICT;

CREATE INDEX alert_outbox_by_receiver ON alert_outbox (receiver, number);

-- Which incidents a waiting notice is about.
CREATE TABLE alert_outbox_incidents (
    scope     TEXT NOT NULL,
    incident  INTEGER NOT NULL,
    outbox    INTEGER NOT NULL REFERENCES alert_outbox (number) ON DELETE CASCADE,
    PRIMARY KEY (scope, incident, outbox)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_outbox_incidents_by_outbox ON alert_outbox_incidents (outbox);

-- What became of notices.
CREATE TABLE alert_deliveries (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    receiver  TEXT NOT NULL,
    key       TEXT NOT NULL,
    made_at   INTEGER NOT NULL,
    tries     INTEGER NOT NULL,
    outcome   TEXT NOT NULL CHECK (outcome IN ('delivered', 'refused', 'given_up', 'cancelled', 'combined')),
    remark    TEXT,
    title     TEXT NOT NULL
) STRICT;

CREATE INDEX alert_deliveries_by_receiver ON alert_deliveries (receiver, number);
