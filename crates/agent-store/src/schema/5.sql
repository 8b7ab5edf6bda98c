-- agent.db, version 5: who holds a guest's tokens, and the records about one guest.

-- From where the present token was last used. Another place while this one stands shows a second holder.
ALTER TABLE guest ADD COLUMN token_used_from TEXT;

-- Tokens of earlier generations, by their hashes. Who shows one after the later one was used is a second holder.
CREATE TABLE former_token (
    hash       BLOB PRIMARY KEY,
    guest      TEXT NOT NULL,
    generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX former_token_guest ON former_token (guest, generation);

-- A guest's controller reads the records about its guest, of which there are few among many.
CREATE INDEX audit_guest ON audit (guest, number) WHERE guest IS NOT NULL;
