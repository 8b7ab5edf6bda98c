-- What an agent of version 1 left behind: a document, a guest, an operation under way, its journal and its audit.
INSERT INTO meta (key, value) VALUES ('damage', '/var/lib/holdfast/agent.db.damaged-1799990000');
INSERT INTO counter (key, value) VALUES ('starts', 2), ('latest_time', 1800000000000001);
INSERT INTO desired (generation, content, document, accepted_at, good_at)
    VALUES (7, 'sha256:00', '{"schema":"holdfast.desired/v1"}', 1799999000000000, 1799999100000000);
INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by, volumes, access, token_hash, token_generation,
    claim_state, hello_version, hello_health, hello_boot_id, hello_at)
    VALUES ('00000000-0000-0000-0000-000000000001', 'web-1', 'acme', '2026.11.1', 'made', 300,
        '00000000-0000-0000-0000-0000000003e8', '["labbtrfs:300/vm-300-disk-0.raw"]', 'open', x'0102', 1, 'used',
        '0.1.0', 'well', 'b', 1799999200000000);
INSERT INTO used_vmid (vmid, uid) VALUES (300, '00000000-0000-0000-0000-000000000001');
INSERT INTO operation (serial, id, kind, guest, version, spec, generation, opened_at)
    VALUES (1, '00000000-0000-0000-0000-0000000003e9', 'start', '00000000-0000-0000-0000-000000000001', 1,
        '{"start":{"uid":"00000000-0000-0000-0000-000000000001","name":"web-1","vmid":300}}', 7, 1799999300000000);
INSERT INTO event (operation, number, at, body) VALUES
    (1, 1, 1799999300000001, '"begun"'), (1, 2, 1799999300000002, '{"intended":{"step":0}}');
INSERT INTO idempotency (guest, key, body, status, answer, at)
    VALUES ('00000000-0000-0000-0000-000000000001', 'k-1', x'00', 202, '{}', 1799999300000003);
INSERT INTO audit (number, at, action, guest, operation, detail, chain)
    VALUES (1, 1799999300000000, 'operation_opened', '00000000-0000-0000-0000-000000000001',
        '00000000-0000-0000-0000-0000000003e9', 'start: it should run', x'00');
