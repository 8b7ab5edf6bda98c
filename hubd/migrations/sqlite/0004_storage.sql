-- How the targets of a host's storage manifest stand.
ALTER TABLE reports ADD COLUMN storage TEXT;
