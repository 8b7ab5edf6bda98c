-- Whether a key is another host's already is asked at every enrolment and renewal.
CREATE INDEX certificate_key ON certificates (spki);
