-- Signed jobs on their way to hosts. The hub cannot open them; what it shows of one is what the host said of it.
CREATE TABLE jobs (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    host          INTEGER NOT NULL REFERENCES hosts (number),
    id            BLOB NOT NULL CHECK (length(id) = 16),
    blob          TEXT NOT NULL,
    hash          BLOB NOT NULL CHECK (length(hash) = 32),
    operator      TEXT NOT NULL,
    submitted_at  INTEGER NOT NULL,
    queue_state          TEXT NOT NULL CHECK (queue_state IN ('queued', 'answered', 'withdrawn')),
    report        TEXT,
    UNIQUE (host, id)
) STRICT;

CREATE INDEX jobs_queued ON jobs (host, number) WHERE queue_state = 'queued';

ALTER TABLE reports ADD COLUMN trust TEXT;
ALTER TABLE reports ADD COLUMN jobs TEXT;

-- The highest number of an audit line that was ever heard from a host: it shows a host that was set back.
ALTER TABLE hosts ADD COLUMN audit_seen INTEGER NOT NULL DEFAULT 0;
