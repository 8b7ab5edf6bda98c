-- The oldest schema whose program can work with this file. A program that finds a newer file than it knows opens it
-- where its own schema is at least this one.
CREATE TABLE schema_reader (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    oldest INTEGER NOT NULL
) STRICT;
INSERT INTO schema_reader (one, oldest) VALUES (1, 32);
