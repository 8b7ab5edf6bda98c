-- agent.db, version 28: since when each condition holds.

-- One row, replaced as a whole: a JSON list of the conditions as they were reported. Of what cannot be seen after a start, the
-- report repeats what is here.
CREATE TABLE reported_conditions (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    conditions TEXT NOT NULL
) STRICT;
