-- How many bytes the rows of `usage` have together, so that a bound needs no look at all of them. A row is replaced by an
-- update: deletions by REPLACE would run no trigger.
CREATE TABLE usage_size (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    bytes  INTEGER NOT NULL
) STRICT;

INSERT INTO usage_size (one, bytes) SELECT 1, coalesce(sum(length(row)), 0) FROM usage;

CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN
    UPDATE usage_size SET bytes = bytes + length(NEW.row);
END;

CREATE TRIGGER usage_replaced AFTER UPDATE ON usage BEGIN
    UPDATE usage_size SET bytes = bytes + length(NEW.row) - length(OLD.row);
END;

CREATE TRIGGER usage_removed AFTER DELETE ON usage BEGIN
    UPDATE usage_size SET bytes = bytes - length(OLD.row);
END;
