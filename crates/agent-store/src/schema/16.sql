-- agent.db, version 16: guests that a copy took the place of.

-- How what stands restored_copy a guest came there: restored from its archive, or laid aside ('archive' is empty then).
ALTER TABLE restored_copy ADD COLUMN origin TEXT NOT NULL DEFAULT 'restored' CHECK (origin IN ('restored', 'demoted'));
