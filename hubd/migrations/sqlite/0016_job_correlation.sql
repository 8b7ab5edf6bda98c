-- The correlation id of the click that left a job, for the events about it and for the agent's records.
ALTER TABLE jobs ADD COLUMN correlation BLOB;
