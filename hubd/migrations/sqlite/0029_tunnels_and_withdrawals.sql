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
