-- Generation of the first certificate after the last readmission; earlier ones are revoked.
ALTER TABLE hosts ADD COLUMN readmitted_from INTEGER NOT NULL DEFAULT 0;

-- Generation of the certificate that the approval gave: 1 for a new host, a later one for a readmitted host.
ALTER TABLE enrollment_requests ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;

-- Ended epochs of a host, by the first certificate of the next. The audit is numbered from 1 in each.
CREATE TABLE epochs (
    host               INTEGER NOT NULL REFERENCES hosts (number),
    before_generation  INTEGER NOT NULL,
    audit_seen         INTEGER NOT NULL,
    ended_at           INTEGER NOT NULL,
    ended_by           TEXT NOT NULL CHECK (ended_by IN ('readmitted', 'restored')),
    PRIMARY KEY (host, before_generation)
) STRICT, WITHOUT ROWID;

-- An enrollment request looks up revoked hosts by name.
CREATE INDEX hosts_revoked ON hosts (name) WHERE status = 'revoked';
