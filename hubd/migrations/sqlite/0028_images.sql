-- Approvals of images for all hosts, each kept once. A host's job of one has no text of its own.
CREATE TABLE image_approvals (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    blob         TEXT NOT NULL,
    hash         BLOB NOT NULL CHECK (length(hash) = 32),
    payload_hash BLOB NOT NULL CHECK (length(payload_hash) = 32),
    version      TEXT NOT NULL,
    sha256       TEXT NOT NULL,
    operator     TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    withdrawn_at INTEGER,
    correlation  BLOB NOT NULL
) STRICT;

ALTER TABLE jobs ADD COLUMN approval INTEGER REFERENCES image_approvals (number);
CREATE INDEX jobs_of_approvals ON jobs (approval) WHERE approval IS NOT NULL;

-- A rollout may bring a golden image, too.
ALTER TABLE rollouts ADD COLUMN brings TEXT NOT NULL DEFAULT 'agent' CHECK (brings IN ('agent', 'guest_agent', 'golden'));
UPDATE rollouts SET brings = subject;
ALTER TABLE rollouts DROP COLUMN subject;
ALTER TABLE rollouts RENAME COLUMN brings TO subject;
