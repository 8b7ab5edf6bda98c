-- Certificates of a host before this number were revoked with it; it came back with this one.
ALTER TABLE hosts ADD COLUMN readmitted_from INTEGER NOT NULL DEFAULT 0;

-- The certificate that the approval of a knock gave: the first of a new host, a later one of a host that came back.
ALTER TABLE knocks ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;

-- Times of a host that ended, by the first certificate of the next. Its audit is numbered anew in each.
CREATE TABLE epochs (
    host               INTEGER NOT NULL REFERENCES hosts (number),
    before_generation  INTEGER NOT NULL,
    audit_seen         INTEGER NOT NULL,
    ended_at           INTEGER NOT NULL,
    ended_by           TEXT NOT NULL CHECK (ended_by IN ('readmitted', 'restored')),
    PRIMARY KEY (host, before_generation)
) STRICT, WITHOUT ROWID;

-- As whom a box that knocks may come back is asked by name.
CREATE INDEX hosts_revoked ON hosts (name) WHERE standing = 'revoked';
