-- agent.db, version 20: the steps that an operation was opened with.

-- Their names in order, as a JSON array. None in operations that an older agent opened: their kinds have the same steps.
ALTER TABLE operation ADD COLUMN steps TEXT;
