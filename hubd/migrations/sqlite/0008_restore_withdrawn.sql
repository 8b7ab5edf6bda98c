-- The signed order that takes an order to restore a host back. It is handed over with that order.
ALTER TABLE restores ADD COLUMN withdrawal TEXT;
ALTER TABLE restores ADD COLUMN withdrawn_at INTEGER;
