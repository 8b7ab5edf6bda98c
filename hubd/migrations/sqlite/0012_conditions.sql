-- What is wrong with the host, as its agent finds it.
ALTER TABLE reports ADD COLUMN conditions TEXT;
