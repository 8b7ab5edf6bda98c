-- Disks, temperatures and memory errors of the host.
ALTER TABLE reports ADD COLUMN hardware TEXT;
