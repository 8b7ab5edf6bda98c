-- Snapshots of state: one document for each day, compressed. Days, weeks and months are thinned by the program.
CREATE TABLE state_snapshots (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    day      TEXT NOT NULL UNIQUE,
    taken_at INTEGER NOT NULL,
    hosts    INTEGER NOT NULL,
    guests   INTEGER NOT NULL,
    content  TEXT NOT NULL,
    document TEXT NOT NULL,
    bytes    INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;
