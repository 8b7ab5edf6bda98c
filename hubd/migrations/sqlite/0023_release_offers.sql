-- The release that an operator wants one host to run. A host without a row stays as it is.
CREATE TABLE release_offers (
    host      INTEGER PRIMARY KEY REFERENCES hosts (number),
    -- No reference: another edition of the version keeps the offer.
    version   TEXT NOT NULL,
    operator  TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

CREATE INDEX release_offers_by_version ON release_offers (version);
