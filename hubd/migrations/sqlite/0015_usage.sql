-- Use of hosts and guests over time. The span is 0 for minutes (kept for 2 hours), 1 for five minutes (7 days) and 2 for hours
-- (400 days). A row holds a host with its guests; `at` is in seconds.
CREATE TABLE usage (
    host  INTEGER NOT NULL REFERENCES hosts (number),
    span  INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    row   BLOB NOT NULL,
    PRIMARY KEY (host, span, at)
) STRICT, WITHOUT ROWID;
