-- What several hubs on one database share. This engine has one hub; its tables are those of the other engine, so that
-- rows can be carried over, and the rules of duties are the same.

-- The CA whose certificates hosts have. A hub with another one does not start.
CREATE TABLE hub_identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    ca  TEXT NOT NULL
) STRICT;

-- Since when some hub hears hosts without a gap, and when one last did.
CREATE TABLE hub_presence (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    since  INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

-- Who has a duty. The epoch rises with each new holder.
CREATE TABLE hub_leases (
    duty        TEXT PRIMARY KEY,
    holder      BLOB NOT NULL CHECK (length(holder) = 16),
    epoch       INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;

-- Numbers of changes that a held check-in waits for. Only the other engine counts them.
CREATE TABLE change_seq (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
) STRICT;

CREATE TABLE host_changes (
    host  BLOB PRIMARY KEY CHECK (length(host) = 16),
    seq   INTEGER NOT NULL
) STRICT;

CREATE INDEX host_changes_by_seq ON host_changes (seq);

INSERT INTO change_seq (one, seq) VALUES (1, 0);
