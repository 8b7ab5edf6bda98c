-- Rollouts of a release over hosts, in waves. At most one is not over.
CREATE TABLE rollouts (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    version     TEXT NOT NULL,
    state       TEXT NOT NULL
        CHECK (state IN ('planned', 'running', 'paused', 'held', 'aborted', 'finished')),
    -- Why it is held.
    reason      TEXT,
    -- The wave that is open, from 0.
    wave        INTEGER,
    opened_at   INTEGER,
    settled_at  INTEGER,
    -- Since when it is held.
    held_at     INTEGER,
    operator    TEXT NOT NULL,
    at          INTEGER NOT NULL,
    CHECK ((wave IS NULL) = (opened_at IS NULL)),
    CHECK ((state = 'held') = (held_at IS NOT NULL)),
    CHECK (state NOT IN ('running', 'paused', 'held') OR wave IS NOT NULL)
) STRICT;

CREATE TABLE rollout_waves (
    rollout       INTEGER NOT NULL REFERENCES rollouts (number) ON DELETE CASCADE,
    wave          INTEGER NOT NULL,
    max_failures  INTEGER NOT NULL,
    soak_s        INTEGER NOT NULL,
    timeout_s     INTEGER NOT NULL,
    PRIMARY KEY (rollout, wave)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollout_hosts (
    rollout   INTEGER NOT NULL REFERENCES rollouts (number) ON DELETE CASCADE,
    host      INTEGER NOT NULL REFERENCES hosts (number),
    wave      INTEGER NOT NULL,
    -- When the agent started that the release brought, by the host's clock.
    taken_at  INTEGER,
    -- Whether an operator went on without it.
    accepted  INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1)),
    PRIMARY KEY (rollout, host)
) STRICT, WITHOUT ROWID;

CREATE INDEX rollout_hosts_by_host ON rollout_hosts (host);
