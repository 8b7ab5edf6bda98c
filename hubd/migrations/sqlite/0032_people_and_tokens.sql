-- Roles for customers, scopes of people, customers, machine tokens, and objections to jobs. A scope is JSON, and NULL is
-- everything.
CREATE TABLE operators_next (
    name        TEXT PRIMARY KEY,
    role        TEXT NOT NULL CHECK (role IN ('customer', 'viewer', 'operator', 'admin')),
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    scope       TEXT
) STRICT, WITHOUT ROWID;

INSERT INTO operators_next (name, role, created_at, revoked_at)
SELECT name, role, created_at, revoked_at FROM operators;

CREATE TABLE tokens_next (
    hash        BLOB PRIMARY KEY CHECK (length(hash) = 32),
    operator    TEXT NOT NULL REFERENCES operators_next (name),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tokens_next (hash, operator, created_at, expires_at)
SELECT hash, operator, created_at, expires_at FROM tokens;

DROP TABLE tokens;
DROP TABLE operators;
ALTER TABLE operators_next RENAME TO operators;
ALTER TABLE tokens_next RENAME TO tokens;

-- What was added about customers. One that only a document names has no row.
CREATE TABLE customers (
    name        TEXT PRIMARY KEY,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    body        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Names of people and of tokens are one set, which the program keeps.
CREATE TABLE machine_tokens (
    name        TEXT PRIMARY KEY,
    maker       TEXT NOT NULL REFERENCES operators (name),
    role        TEXT NOT NULL CHECK (role IN ('customer', 'viewer', 'operator', 'admin')),
    scope       TEXT,
    created_at  INTEGER NOT NULL,
    used_at     INTEGER,
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX machine_tokens_by_maker ON machine_tokens (maker);

CREATE TABLE machine_secrets (
    hash        BLOB PRIMARY KEY CHECK (length(hash) = 32),
    token       TEXT NOT NULL REFERENCES machine_tokens (name),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX machine_secrets_by_token ON machine_secrets (token);

-- An approval of an image has one id on many hosts, so this is not a reference to one row of jobs.
CREATE TABLE job_objections (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    job     BLOB NOT NULL CHECK (length(job) = 16),
    body    TEXT NOT NULL
) STRICT;

CREATE INDEX job_objections_by_job ON job_objections (job, number);

-- The guest of a job, as its host reported it, and whose it was then.
ALTER TABLE jobs ADD COLUMN guest TEXT;
ALTER TABLE jobs ADD COLUMN customer TEXT;
CREATE INDEX jobs_by_id ON jobs (id);
CREATE INDEX jobs_of_customer ON jobs (customer, number) WHERE customer IS NOT NULL;

UPDATE jobs SET guest = json_extract(report, '$.guest') WHERE report IS NOT NULL;

-- Whose guest an event is about.
ALTER TABLE events ADD COLUMN customer TEXT;
CREATE INDEX events_of_customer ON events (customer, number) WHERE customer IS NOT NULL;

-- What a notice is about.
ALTER TABLE notices ADD COLUMN subject TEXT NOT NULL DEFAULT 'escrow_read' CHECK (subject IN ('escrow_read', 'job'));
