-- agent.db, version 22: what was last carried out of each guest's fields.

-- One row a guest: a JSON object by the field's path, of value, time, and whether a running guest had it at once.
CREATE TABLE applied (
    guest  TEXT PRIMARY KEY,
    fields TEXT NOT NULL
) STRICT, WITHOUT ROWID;
