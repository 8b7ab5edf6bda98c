-- agent.db, version 13: how the controller of a scratch guest comes to speak, and what it said.

-- One row for each restore test that may be heard. It comes with the claim and goes with the end of its operation. Of claim
-- and token only the SHA-256 is kept; neither is ever a guest's.
CREATE TABLE test_access (
    operation        TEXT PRIMARY KEY,
    guest            TEXT NOT NULL,
    customer         TEXT NOT NULL,
    claim_hash       BLOB NOT NULL UNIQUE,
    claim_expires_at INTEGER NOT NULL,
    claim_redeemer   BLOB,
    token_hash       BLOB UNIQUE,
    token_generation INTEGER NOT NULL DEFAULT 0,
    hello_at         INTEGER,
    hello_version    TEXT,
    report           TEXT,
    reported_at      INTEGER
) STRICT, WITHOUT ROWID;
