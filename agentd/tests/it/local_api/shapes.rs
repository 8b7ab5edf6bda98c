//! Tests of malformed bodies and headers.

use holdfast_protocol::code::ErrorCode;

use crate::local_api::world::{DB, Expect, WEB, WEB_AT, World};

/// A call, a body that it takes, and the name of one of its text fields.
const CALLS: [(&str, &str, &str); 4] = [
    ("/v1/snapshots", r#"{"name":"before","keep_s":7200}"#, "name"),
    ("/v1/rollback", r#"{"snapshot":"before"}"#, "snapshot"),
    ("/v1/hello", r#"{"version":"0.1.0","health":"well","boot_id":"b-1"}"#, "version"),
    ("/v1/claim", r#"{"claim":"0123456789abcdef0123456789abcdef"}"#, "claim"),
];

type Row = (&'static str, Vec<u8>, ErrorCode);

/// The errors that are the same for every call.
fn rows(good: &str, field: &str) -> Vec<Row> {
    use ErrorCode::{DuplicateKey, Range, Size, Syntax, UnknownField};
    let open = good.strip_suffix('}').unwrap();
    let with = |more: &str| format!("{open},{more}}}").into_bytes();
    let wrong = |value: &[u8]| [b"{\"", field.as_bytes(), b"\":", value, b"}"].concat();
    let first = field.chars().next().unwrap();
    let escaped = format!("\\u{:04x}{}", u32::from(first), &field[1..]);
    let deep = format!("\"x\":{}1{}", "[".repeat(6_000), "]".repeat(6_000));
    vec![
        ("one byte", b"{".to_vec(), Syntax),
        ("half", good.as_bytes()[..good.len() / 2].to_vec(), Syntax),
        ("too long", format!("{good}{}", " ".repeat(16 * 1024)).into_bytes(), Size),
        ("a long text", wrong(format!("\"{}\"", "a".repeat(16 * 1024)).as_bytes()), Size),
        ("compressed", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xabV*N\xcc-\xc8IU\xb2R\0\0".to_vec(), Syntax),
        ("a mark of order", [b"\xef\xbb\xbf", good.as_bytes()].concat(), Syntax),
        ("in sixteen bits", good.encode_utf16().flat_map(u16::to_le_bytes).collect(), Syntax),
        ("a zero behind it", [good.as_bytes(), b"\0"].concat(), Syntax),
        ("two documents", [good.as_bytes(), good.as_bytes()].concat(), Syntax),
        ("words behind it", [good.as_bytes(), b" so"].concat(), Syntax),
        ("a comma too many", format!("{open},}}").into_bytes(), Syntax),
        ("a comment", format!("/* */{good}").into_bytes(), Syntax),
        ("single quotes", good.replace('"', "'").into_bytes(), Syntax),
        ("a list", format!("[{good}]").into_bytes(), Range),
        ("nothing", b"null".to_vec(), Range),
        ("a text", b"\"so\"".to_vec(), Range),
        ("a number", b"7".to_vec(), Range),
        ("a form", b"name=before&keep_s=7200".to_vec(), Syntax),
        ("a field nobody knows", with("\"force\":true"), UnknownField),
        ("a field of a prototype", with("\"__proto__\":{}"), UnknownField),
        ("a field in other letters", with("\"Guest\":1"), UnknownField),
        ("deep", with(&deep), UnknownField),
        ("a field twice", with(&format!("\"{field}\":\"other\"")), DuplicateKey),
        ("a field twice, once escaped", with(&format!("\"{escaped}\":\"other\"")), DuplicateKey),
        ("a number for a text", wrong(b"7"), Range),
        ("a list for a text", wrong(b"[\"before\"]"), Range),
        ("an object for a text", wrong(b"{}"), Range),
        ("a truth for a text", wrong(b"true"), Range),
        ("half a pair of surrogates", wrong(b"\"\\ud800\""), Syntax),
        ("a byte that is no UTF-8", wrong(b"\"\xff\""), Syntax),
        ("a letter in too many bytes", wrong(b"\"\xc0\xaf\""), Syntax),
        ("a raw newline", wrong(b"\"a\nb\""), Syntax),
        ("not a number", wrong(b"NaN"), Syntax),
    ]
}

/// The errors of one call alone.
fn special() -> Vec<(&'static str, Row)> {
    use ErrorCode::{Missing, NotYours, Range, Syntax};
    let snapshot = |name, body: String, code| ("/v1/snapshots", (name, body.into_bytes(), code));
    let keep = |name, value: &str, code| snapshot(name, format!("{{\"keep_s\":{value}}}"), code);
    let named = |name, value: &str| snapshot(name, format!("{{\"name\":\"{value}\"}}"), Range);
    let mut rows = vec![
        keep("a number in a text", "\"7200\"", Range),
        keep("a number with an exponent", "72e2", Range),
        keep("a number with a fraction", "7200.0", Range),
        keep("less than nothing", "-1", Range),
        keep("nothing, from below", "-0", Range),
        keep("beyond exact numbers", "9007199254740993", Range),
        keep("beyond all numbers", "1e999", Syntax),
        keep("leading zeroes", "07200", Syntax),
        keep("hex", "0x1c20", Syntax),
        keep("too short", "3599", Range),
        keep("too long", "2592001", Range),
        named("an option of a shell", "--rollback"),
        named("a path", "../x"),
        named("a list of properties", "a,protection=0"),
        named("a newline", "a\\nb"),
        named("a zero", "a\\u0000b"),
        named("letters that look alike", "cuгrent"),
        named("the wrong way round", "a\\u202eb"),
        named("no name", ""),
        named("a long name", &"a".repeat(41)),
        snapshot("another guest", format!("{{\"guest\":\"{DB}\"}}"), NotYours),
        snapshot(
            "no guest at all",
            "{\"guest\":\"00000000-0000-0000-0000-000000000000\"}".to_owned(),
            NotYours,
        ),
        snapshot("the guest in capitals", format!("{{\"guest\":\"{}\"}}", WEB.to_uppercase()), Range),
        snapshot("the guest without dashes", format!("{{\"guest\":\"{}\"}}", WEB.replace('-', "")), Range),
        snapshot("the guest by its number", "{\"guest\":300}".to_owned(), Range),
        snapshot(
            "null for another field's absence",
            "{\"name\":\"before\",\"keep_s\":null}".to_owned(),
            Range,
        ),
        snapshot("null for a name", "{\"name\":null}".to_owned(), Range),
        snapshot("null for a guest", "{\"guest\":null}".to_owned(), Range),
        snapshot("two guests", format!("{{\"guest\":[\"{WEB}\",\"{DB}\"]}}"), Range),
    ];
    let of = |call: &'static str, name, body: &str, code| (call, (name, body.as_bytes().to_vec(), code));
    rows.extend([
        of("/v1/rollback", "nothing said", "{}", Missing),
        of("/v1/rollback", "nothing at all", "", Syntax),
        of("/v1/rollback", "no snapshot", "{\"snapshot\":null}", Range),
        of("/v1/rollback", "another guest", &format!("{{\"snapshot\":\"ab\",\"guest\":\"{DB}\"}}"), NotYours),
        of("/v1/rollback", "a snapshot nobody took", "{\"snapshot\":\"never\"}", ErrorCode::NotFound),
        of("/v1/backups", "another guest", &format!("{{\"guest\":\"{DB}\"}}"), NotYours),
        of("/v1/backups", "a storage", "{\"storage\":\"other\"}", ErrorCode::UnknownField),
        of("/v1/rollback", "null for a guest", r#"{"snapshot":"before","guest":null}"#, Range),
        of("/v1/backups", "null for a guest", "{\"guest\":null}", Range),
        of(
            "/v1/hello",
            "null for a build",
            r#"{"version":"0.1.0","health":"well","boot_id":"b-1","build":null}"#,
            Range,
        ),
        of(
            "/v1/claim",
            "null for a redeemer",
            r#"{"claim":"0123456789abcdef0123456789abcdef","redeemer":null}"#,
            Range,
        ),
        of("/v1/hello", "half said", "{\"version\":\"1\"}", Missing),
        of(
            "/v1/hello",
            "a health nobody knows",
            r#"{"version":"1","health":"fine","boot_id":"b"}"#,
            ErrorCode::Version,
        ),
        of("/v1/hello", "blanks", r#"{"version":"a b","health":"well","boot_id":"b"}"#, Range),
        of("/v1/hello", "an escape", r#"{"version":"\u001b[2J","health":"well","boot_id":"b"}"#, Range),
        of("/v1/hello", "an empty word", r#"{"version":"","health":"well","boot_id":"b"}"#, Range),
        of(
            "/v1/hello",
            "another guest",
            &format!(r#"{{"version":"1","health":"well","boot_id":"b","guest":"{DB}"}}"#),
            ErrorCode::UnknownField,
        ),
        of("/v1/claim", "nothing said", "{}", Missing),
        of(
            "/v1/claim",
            "a claim nobody minted",
            r#"{"claim":"0123456789abcdef0123456789abcdef"}"#,
            ErrorCode::ClaimRefused,
        ),
    ]);
    rows
}

/// Keys that cannot make a request idempotent.
fn keys(world: &World) -> Vec<(&'static str, String)> {
    let with = |lines: &str| {
        let bearer = format!("authorization: Bearer {}\r\ncontent-length: 2\r\n", world.web);
        world.head("POST", "/v1/snapshots", &format!("{bearer}{lines}")) + "{}"
    };
    vec![
        ("an empty key", with("idempotency-key:\r\n")),
        ("a long key", with(&format!("idempotency-key: {}\r\n", "a".repeat(129)))),
        ("two keys", with("idempotency-key: a\r\nidempotency-key: b\r\n")),
        ("a key twice", with("idempotency-key: a\r\nIdempotency-Key: a\r\n")),
        ("a key with a blank", with("idempotency-key: a b\r\n")),
        ("a key of no ASCII", with("idempotency-key: é\r\n")),
        ("a key with a slash", with("idempotency-key: a/b\r\n")),
    ]
}

pub async fn all(world: &World) -> usize {
    let mut count = 0;
    let mut hold = async |call: &str, (name, body, code): Row| {
        let length = body.len();
        let lines = format!("authorization: Bearer {}\r\ncontent-length: {length}\r\n", world.web);
        let bytes = [world.head("POST", call, &lines).as_bytes(), &body].concat();
        world.refuses(&format!("{name} to {call}"), WEB_AT, &bytes, Expect::Code(code)).await;
        count += 1;
    };
    for (call, good, field) in CALLS {
        for row in rows(good, field) {
            hold(call, row).await;
        }
    }
    for (call, row) in special() {
        hold(call, row).await;
    }
    for (name, request) in keys(world) {
        world.refuses(name, WEB_AT, request.as_bytes(), Expect::Code(ErrorCode::Range)).await;
        count += 1;
    }
    // And a correct request is accepted after all of it.
    let answer =
        world.ask(WEB_AT, &world.request("POST", "/v1/snapshots", Some(&world.web), CALLS[0].1)).await;
    assert_eq!(answer.unwrap().status, 202);
    count
}
