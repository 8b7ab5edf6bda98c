-- After how many seconds of silence a host is called offline, as its document says; none: three polls and a grace.
ALTER TABLE hosts ADD COLUMN alarm_after_s INTEGER;
