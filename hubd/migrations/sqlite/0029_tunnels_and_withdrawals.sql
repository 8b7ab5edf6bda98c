-- What orders for a host that requests enrollment are sealed and signed for, as JSON; part of what is compared by eye.
ALTER TABLE enrollment_requests ADD COLUMN sealing TEXT;

-- The newest signed job that gave a tunnel its token. It outlives the job: operators carry the token over with it.
CREATE TABLE tunnel_orders (
    host          INTEGER NOT NULL REFERENCES hosts (number),
    tunnel        TEXT NOT NULL,
    id            BLOB NOT NULL CHECK (length(id) = 16),
    blob          TEXT NOT NULL,
    operator      TEXT NOT NULL,
    submitted_at  INTEGER NOT NULL,
    PRIMARY KEY (host, tunnel)
) STRICT;

-- Whether hosts of a rollout that is paused end the trial of its release.
ALTER TABLE rollouts ADD COLUMN takes_back INTEGER NOT NULL DEFAULT 0 CHECK (takes_back IN (0, 1));

-- Offers to single hosts that an operator withdrew. A host that still has the release on trial ends it.
CREATE TABLE withdrawn_offers (
    host     INTEGER NOT NULL REFERENCES hosts (number),
    version  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (host, version)
) STRICT;
