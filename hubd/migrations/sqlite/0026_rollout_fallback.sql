-- The release that hosts go back to when a rollout is stopped, and whether they do.
ALTER TABLE rollouts ADD COLUMN fallback TEXT;
ALTER TABLE rollouts ADD COLUMN rolls_back INTEGER NOT NULL DEFAULT 0 CHECK (rolls_back IN (0, 1));
-- Why a host failed when it last did.
ALTER TABLE rollout_hosts ADD COLUMN failed_why TEXT;
