-- What changed, for open pages. One row for each host and one for the hub itself (an empty subject), with the number of its
-- newest change. Triggers write them, so that no writer can forget; a check-in without news changes none of these rows.
CREATE TABLE page_changes (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    subject  BLOB NOT NULL UNIQUE CHECK (length(subject) IN (0, 16))
) STRICT;

CREATE TRIGGER report_shown AFTER UPDATE ON reports BEGIN
    DELETE FROM page_changes WHERE subject = (SELECT id FROM hosts WHERE number = new.host);
    INSERT INTO page_changes (subject) SELECT id FROM hosts WHERE number = new.host;
END;

CREATE TRIGGER host_shown AFTER UPDATE OF status, liveness, wanted, held ON hosts
WHEN old.status <> new.status OR old.liveness <> new.liveness OR old.wanted <> new.wanted OR old.held <> new.held BEGIN
    DELETE FROM page_changes WHERE subject = new.id;
    INSERT INTO page_changes (subject) VALUES (new.id);
END;

CREATE TRIGGER event_shown AFTER INSERT ON events BEGIN
    DELETE FROM page_changes WHERE subject = coalesce(new.host, x'');
    INSERT INTO page_changes (subject) VALUES (coalesce(new.host, x''));
END;

CREATE TRIGGER order_shown AFTER INSERT ON work_orders BEGIN
    DELETE FROM page_changes WHERE subject = (SELECT id FROM hosts WHERE number = new.host);
    INSERT INTO page_changes (subject) SELECT id FROM hosts WHERE number = new.host;
END;

CREATE TRIGGER order_going_on_shown AFTER UPDATE ON work_orders BEGIN
    DELETE FROM page_changes WHERE subject = (SELECT id FROM hosts WHERE number = new.host);
    INSERT INTO page_changes (subject) SELECT id FROM hosts WHERE number = new.host;
END;

CREATE TRIGGER alerts_shown AFTER UPDATE OF body ON alert_scopes WHEN old.body <> new.body BEGIN
    DELETE FROM page_changes WHERE subject = coalesce(unhex(replace(new.scope, '-', '')), x'');
    INSERT INTO page_changes (subject) VALUES (coalesce(unhex(replace(new.scope, '-', '')), x''));
END;

CREATE TRIGGER request_shown AFTER INSERT ON enrollment_requests BEGIN
    DELETE FROM page_changes WHERE subject = x'';
    INSERT INTO page_changes (subject) VALUES (x'');
END;
