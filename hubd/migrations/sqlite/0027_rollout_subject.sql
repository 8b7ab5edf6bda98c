-- What a rollout brings, and what became of asking for it in the document of a host.
ALTER TABLE rollouts ADD COLUMN subject TEXT NOT NULL DEFAULT 'agent' CHECK (subject IN ('agent', 'guest_agent'));
ALTER TABLE rollout_hosts ADD COLUMN asked_generation INTEGER;
ALTER TABLE rollout_hosts ADD COLUMN asked_refused TEXT;
