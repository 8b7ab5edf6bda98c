-- agent.db, version 7: what a signed job left to do to a target's entry in Proxmox.

-- Null once it is settled, and for targets that were approved before this version: root made their entries.
ALTER TABLE storage_target ADD COLUMN entry_due TEXT CHECK (entry_due IN ('make', 'disable'));
-- The job that is owed it.
ALTER TABLE storage_target ADD COLUMN entry_job TEXT;
