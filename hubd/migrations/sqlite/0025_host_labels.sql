-- Labels of hosts, when each may be updated, and when rollouts offer their releases. All of them are JSON.
ALTER TABLE hosts ADD COLUMN labels TEXT;
ALTER TABLE hosts ADD COLUMN update_windows TEXT;
ALTER TABLE rollouts ADD COLUMN times TEXT;
-- What an operator asked for, such as a label.
ALTER TABLE rollout_waves ADD COLUMN selects TEXT;
-- When a host was first offered the release.
ALTER TABLE rollout_hosts ADD COLUMN offered_at INTEGER;

-- Until now a wave was offered the release as a whole when it was opened.
UPDATE rollout_hosts
SET offered_at = (SELECT opened_at FROM rollouts WHERE rollouts.number = rollout_hosts.rollout)
WHERE wave <= (SELECT wave FROM rollouts WHERE rollouts.number = rollout_hosts.rollout);
