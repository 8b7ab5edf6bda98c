-- Pending upgrades and a due restart of the host.
ALTER TABLE reports ADD COLUMN updates TEXT;
