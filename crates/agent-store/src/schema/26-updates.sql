-- agent.db, version 26: what became of controllers, by build and guest.

-- A build may be bad in one guest and good in the next. "bad": the new controller said that it is not well, and the guest went
-- back. "silent": nobody was heard after it was fetched; a later word of the guest answers that. The rows of a build go when an
-- operator signs for its bytes once more.
CREATE TABLE controller_verdict (
    sha256    TEXT NOT NULL,
    guest     TEXT NOT NULL,
    version   TEXT NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('bad', 'silent')),
    operation TEXT NOT NULL,
    why       TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (sha256, guest)
) STRICT, WITHOUT ROWID;

INSERT INTO controller_verdict (sha256, guest, version, verdict, operation, why, at)
    SELECT sha256, guest, version, 'bad', operation, why, at FROM bad_controller;

DROP TABLE bad_controller;
