//! Tests of malformed texts and payloads.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use holdfast_protocol::code::ErrorCode::{
    self, DuplicateKey, Missing, Range, Size, Syntax, UnknownField, Version,
};
use holdfast_protocol::job::BYTES_MAX;
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;

use crate::intake::hand::job;
use crate::intake::store_fixture::StoreFixture;

/// A field with its value, as written in a text of one line.
fn member(text: &str, field: &str) -> String {
    let start = text.find(&format!("\"{field}\":")).unwrap();
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => return text[start..at].to_owned(),
            _ => {}
        }
    }
    panic!("{field} has no end in {text}")
}

fn without(text: &str, field: &str) -> String {
    let member = member(text, field);
    let first = format!("{member},");
    if text.contains(&first) {
        text.replacen(&first, "", 1)
    } else {
        text.replacen(&format!(",{member}"), "", 1)
    }
}

fn with(text: &str, field: &str, value: &str) -> String {
    text.replacen(&member(text, field), &format!("\"{field}\":{value}"), 1)
}

fn twice(text: &str, field: &str) -> String {
    let member = member(text, field);
    text.replacen(&member, &format!("{member},{member}"), 1)
}

/// The same field once more, its first letter written in another way.
fn twice_escaped(text: &str, field: &str) -> String {
    let member = member(text, field);
    let first = u32::from(field.as_bytes()[0]);
    let other = member.replacen(&format!("\"{field}\""), &format!("\"\\u{first:04x}{}\"", &field[1..]), 1);
    text.replacen(&member, &format!("{member},{other}"), 1)
}

const JUNK: [(&str, &str); 5] =
    [("null", "null"), ("a list", "[]"), ("an object", "{}"), ("a bool", "true"), ("a fraction", "1.5")];

fn envelopes(good: &str) -> Vec<(String, String, ErrorCode)> {
    let mut all: Vec<(String, String, ErrorCode)> = Vec::new();
    let mut add = |name: &str, text: String, code| all.push((format!("envelope: {name}"), text, code));
    add("empty", String::new(), Syntax);
    add("one byte", "x".to_owned(), Syntax);
    add("a digit", "1".to_owned(), Range);
    add("too long", "x".repeat(SIGNED_BYTES_MAX + 1), Size);
    add("too long but right", format!("{good}{}", " ".repeat(SIGNED_BYTES_MAX)), Size);
    add("a BOM", format!("\u{feff}{good}"), Syntax);
    add("a NUL behind", format!("{good}\0"), Syntax);
    add("two of them", format!("{good}{good}"), Syntax);
    add("a comma behind", format!("{good},"), Syntax);
    add("in a list", format!("[{good}]"), Range);
    add("as a string", format!("{good:?}"), Range);
    add("deep", format!("{}{}", "[".repeat(500), "]".repeat(500)), Range);
    add("deep inside", with(good, "payload", &format!("{}{}", "{\"a\":".repeat(200), "1")), Range);
    add("gzip", "\u{1f}\u{8b}\u{8}\0".to_owned(), Syntax);
    add("NaN", with(good, "payload", "NaN"), Syntax);
    add("a comment", format!("/* so */{good}"), Syntax);
    add("single quotes", good.replace('"', "'"), Syntax);
    add("another schema", good.replacen("signed-job/v1", "signed-job/v2", 1), Version);
    add("the payload's schema", good.replacen("signed-job/v1", "job/v1", 1), Version);
    add("an unknown field", good.replacen('{', "{\"force\":true,", 1), UnknownField);
    add("no signatures", with(good, "signatures", "[]"), Range);
    add("nine signatures", with(good, "signatures", &format!("[{}]", ["\"s\""; 9].join(","))), Range);
    add("a signature that is a number", with(good, "signatures", "[1]"), Range);
    add("a lone surrogate", with(good, "payload", "\"\\ud800\""), Syntax);
    for field in ["schema", "payload", "signatures"] {
        add(&format!("{field} missing"), without(good, field), Missing);
        add(&format!("{field} twice"), twice(good, field), DuplicateKey);
        add(&format!("{field} twice, escaped"), twice_escaped(good, field), DuplicateKey);
        for (name, junk) in JUNK.into_iter().filter(|(name, _)| (*name, field) != ("a list", "signatures")) {
            // A value of the wrong JSON type for an enum already fails in the JSON reader.
            let code = if field == "schema" { Syntax } else { Range };
            add(&format!("{field} is {name}"), with(good, field, junk), code);
        }
    }
    let payload = STANDARD
        .decode(member(good, "payload").trim_start_matches("\"payload\":\"").trim_end_matches('"'))
        .unwrap();
    let mut base64 = |name: &str, text: &str| add(name, with(good, "payload", &format!("{text:?}")), Syntax);
    let plain = STANDARD.encode(&payload);
    base64("base64 for URLs", &URL_SAFE_NO_PAD.encode([0xfb, 0xff, 0xfe]));
    base64("base64 without its end", &plain[..plain.len() - 1]);
    base64("base64 with a space", &plain.replacen('e', "e ", 1));
    base64("base64 with a line end", &plain.replacen('e', "e\n", 1));
    base64("base64 with bits left over", "e31=");
    base64("base64 padded twice", &format!("{plain}===="));
    base64("no base64", "{}");
    for cut in (0..40).map(|part| part * good.len() / 40) {
        if cut > 0 {
            add(&format!("cut at {cut}"), good[..cut].to_owned(), Syntax);
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_are_no_signed_job() {
    let mut listener = StoreFixture::open().await;
    let (_, payload) = listener.destroy().await;
    let vectors = envelopes(&job(payload.as_bytes(), &[&listener.alice]));
    assert!(vectors.len() > 80, "{}", vectors.len());
    for (name, text, code) in vectors {
        let (id, _) = listener.fresh();
        listener.refuses_and_takes(&name, id, &text, code).await;
    }
}

fn payloads(good: &str) -> Vec<(String, String, ErrorCode)> {
    let mut all: Vec<(String, String, ErrorCode)> = Vec::new();
    let mut add = |name: &str, text: String, code| all.push((format!("payload: {name}"), text, code));
    let fields = [
        "schema",
        "job_id",
        "host_id",
        "host_epoch",
        "target",
        "verb",
        "args",
        "not_before",
        "expires_at",
        "nonce",
        "reason",
    ];
    for field in fields {
        add(&format!("{field} missing"), without(good, field), Missing);
        add(&format!("{field} twice"), twice(good, field), DuplicateKey);
        add(&format!("{field} twice, escaped"), twice_escaped(good, field), DuplicateKey);
        for (name, junk) in JUNK {
            let code = match (field, name) {
                ("args", "an object") => continue,
                ("target", "an object" | "a list") => Missing,
                ("schema" | "verb", _) => Syntax,
                _ => Range,
            };
            add(&format!("{field} is {name}"), with(good, field, junk), code);
        }
    }
    for field in ["kind", "uid", "fingerprint", "name", "volumes"] {
        add(&format!("target's {field} missing"), without(good, field), Missing);
    }
    for field in ["kind", "uid", "vmid", "fingerprint", "name", "volumes"] {
        add(&format!("target's {field} twice"), twice(good, field), DuplicateKey);
        add(&format!("target's {field} is a bool"), with(good, field, "true"), Range);
    }
    let more = |after: &str| good.replacen(after, &format!("\"force\":1,{after}"), 1);
    for (place, after) in [("it", "\"job_id\""), ("its target", "\"uid\""), ("its fingerprint", "\"name\"")] {
        add(&format!("an unknown field in {place}"), more(after), UnknownField);
    }
    add("an unknown field in its args", with(good, "args", "{\"purge\":true}"), UnknownField);
    add("empty", String::new(), Syntax);
    add("a BOM", format!("\u{feff}{good}"), Syntax);
    add("a NUL behind", format!("{good}\0"), Syntax);
    add("two of them", format!("{good}{good}"), Syntax);
    add("in a list", format!("[{good}]"), Range);
    add("too long", format!("{good}{}", " ".repeat(BYTES_MAX)), Size);
    add("a long reason", with(good, "reason", &format!("\"{}\"", "x".repeat(60_000))), Range);
    add("deep", with(good, "args", &format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60))), UnknownField);
    add(
        "too deep",
        with(good, "args", &format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200))),
        UnknownField,
    );
    for cut in (1..24).map(|part| part * good.len() / 24) {
        add(&format!("cut at {cut}"), good[..cut].to_owned(), Syntax);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_bytes_that_are_no_job() {
    let mut listener = StoreFixture::open().await;
    let (_, good) = listener.destroy().await;
    let vectors = payloads(&good);
    assert!(vectors.len() > 130, "{}", vectors.len());
    for (name, text, code) in vectors {
        let (id, _) = listener.fresh();
        let blob = job(text.as_bytes(), &[&listener.alice]);
        listener.refuses_and_takes(&name, id, &blob, code).await;
    }
    for (name, bytes) in [
        ("invalid UTF-8", &b"{\"schema\":\"\xff\"}"[..]),
        ("overlong UTF-8", &b"{\"schema\":\"\xc0\xaf\"}"[..]),
    ] {
        let (id, _) = listener.fresh();
        let blob = job(bytes, &[&listener.alice]);
        listener.refuses_and_takes(name, id, &blob, Syntax).await;
    }
}
