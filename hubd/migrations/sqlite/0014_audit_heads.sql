-- Ends of a host's audit chain, as it reported them. An end of an earlier epoch has a time at which its epoch ended.
CREATE TABLE audit_heads (
    host      INTEGER NOT NULL REFERENCES hosts (number),
    number    INTEGER NOT NULL,
    chain     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    ended_at  INTEGER
) STRICT;

CREATE UNIQUE INDEX audit_heads_by_number ON audit_heads (host, number) WHERE ended_at IS NULL;

-- Evidence that a chain does not continue from what was seen of it.
CREATE TABLE audit_breaks (
    host          INTEGER NOT NULL REFERENCES hosts (number),
    at            INTEGER NOT NULL,
    kept_number   INTEGER NOT NULL,
    kept_chain    TEXT NOT NULL,
    found_number  INTEGER NOT NULL,
    found_chain   TEXT NOT NULL,
    ended_at      INTEGER
) STRICT;

CREATE INDEX audit_breaks_by_host ON audit_breaks (host) WHERE ended_at IS NULL;
