-- Who operators are at a provider of identities. A link by a claim has no subject until the first sign-in.
CREATE TABLE provider_links (
    operator    TEXT PRIMARY KEY REFERENCES operators (name),
    issuer      TEXT NOT NULL,
    subject     TEXT,
    claim       TEXT,
    origin      TEXT NOT NULL CHECK (origin IN ('admin', 'group')),
    linked_at   INTEGER NOT NULL,
    CHECK ((subject IS NULL) != (claim IS NULL))
) STRICT;

CREATE UNIQUE INDEX provider_links_by_subject ON provider_links (issuer, subject);
CREATE UNIQUE INDEX provider_links_by_claim ON provider_links (issuer, claim);
