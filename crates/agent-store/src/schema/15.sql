-- agent.db, version 15: controllers that guests exchange for their own.

-- Those that did not come up on this host, with the first guest in which they did not. A row goes when an operator signs for
-- these bytes once more.
CREATE TABLE bad_controller (
    sha256    TEXT PRIMARY KEY,
    version   TEXT NOT NULL,
    guest     TEXT NOT NULL,
    operation TEXT NOT NULL,
    why       TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Updates whose guest began to fetch the bytes. Written before the first byte is sent.
CREATE TABLE controller_fetched (
    operation TEXT PRIMARY KEY,
    at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
