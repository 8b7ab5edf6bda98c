-- From which address, or network of an IPv6 customer, a knock came first: one place fills its own part of the list alone.
ALTER TABLE knocks ADD COLUMN origin TEXT NOT NULL DEFAULT '';
