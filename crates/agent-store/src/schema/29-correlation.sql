-- The correlation id of the click that left a job or of the call that made a request, and of the operation that either
-- became. For records alone.
ALTER TABLE job ADD COLUMN correlation TEXT;
ALTER TABLE request ADD COLUMN correlation TEXT;
ALTER TABLE operation ADD COLUMN correlation TEXT;
