-- How many problems the agent itself reports.
ALTER TABLE hosts ADD COLUMN attention_agent INTEGER NOT NULL DEFAULT 0;

-- Since when its agent has not seen Proxmox, and why.
ALTER TABLE hosts ADD COLUMN degraded_since INTEGER;
ALTER TABLE hosts ADD COLUMN degraded_reason TEXT;
