-- agent.db, version 21: what a controller says of its guest.

-- Stacks that are not well, the last security upgrade, a restart that is needed: a JSON object. None where nothing was said.
ALTER TABLE guest ADD COLUMN hello_reported TEXT;
