-- From which address, or network of an IPv6 customer, a request came first: one place fills its own part of the list alone.
ALTER TABLE enrollment_requests ADD COLUMN origin TEXT NOT NULL DEFAULT '';
