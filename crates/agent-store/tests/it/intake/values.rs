//! Tests of values out of range and jobs for others.

use holdfast_protocol::code::ErrorCode::{
    self, ClockBehind, DuplicateKey, Forbidden, HostKeyChanged, JobEpoch, JobExpired, JobLife, JobNotYet,
    JobUnbound, Missing, NotYours, Range, TargetChanged, TargetKind, UnknownField, Version,
};

use crate::intake::hand::job;
use crate::intake::store_fixture::{GUEST, HOST, OWN, StoreFixture, target};

/// A valid payload with one part replaced.
fn replaced(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from} in {good}");
    good.replacen(from, to, 1)
}

fn ranges(good: &str) -> Vec<(String, String, ErrorCode)> {
    let mut all = Vec::new();
    let value = |field: &str| {
        let start = good.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        let end = start + good[start..].find([',', '}']).unwrap();
        good[start..end].to_owned()
    };
    let mut put = |field: &str, bad: &[&str]| {
        for bad in bad {
            let text =
                replaced(good, &format!("\"{field}\":{}", value(field)), &format!("\"{field}\":{bad}"));
            all.push((format!("{field} is {}", bad.chars().take(40).collect::<String>()), text, Range));
        }
    };
    put(
        "host_id",
        &[
            "\"*\"",
            "\"\"",
            "\"01906f3c\"",
            "\"01906F3C-6B1F-7C1D-9D0A-2F6D1C0B7A02\"",
            "\"01906f3c6b1f7c1d9d0a2f6d1c0b7a02\"",
            "\"{01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02}\"",
            "\"urn:uuid:01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02\"",
            "\" 01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02\"",
            "\"box7\"",
            "\"０1906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02\"",
        ],
    );
    put("job_id", &["\"*\"", "\"\"", "\"00\"", "\"01906F3C-6B1F-7C1D-9D0A-2F6D1C0B7A02\"", "7"]);
    put(
        "host_epoch",
        &["-1", "-0.0", "1e3", "4294967296", "9007199254740993", "\"1\"", "18446744073709551616"],
    );
    put("uid", &["\"\"", "\"web-1\"", "\"01906F3C-6B1F-7C1D-9D0A-2F6D1C0B7A03\"", "\"../x\""]);
    put("vmid", &["0", "99", "1000000000", "-1", "\"300\"", "\"104 \"", "300.0", "3e2", "4294967596"]);
    put(
        "name",
        &[
            "\"\"",
            "\"WEB-1\"",
            "\"web,1\"",
            "\"web=1\"",
            "\"web 1\"",
            "\"web\\n1\"",
            "\"-web\"",
            "\"../web\"",
            "\"w\\u0000\"",
            "\"web\\u202e1\"",
            "\"İ\"",
            "\"wеb-1\"",
        ],
    );
    put("volumes", &["\"x\"", "[1]", "[null]", "{}"]);
    let nonce = value("nonce");
    let nonce = nonce.trim_matches('"');
    let short = format!("\"{}\"", &nonce[..30]);
    let odd = format!("\"{}\"", &nonce[..31]);
    let upper = format!("\"AA{}\"", &nonce[2..]);
    let long = format!("\"{}\"", "ab".repeat(65));
    let zero = format!("\"{}\"", "0".repeat(32));
    put(
        "nonce",
        &[&short, &odd, &upper, &long, &zero, "\"\"", "\"zz00112233445566778899aabbccddeeff\"", "\" \""],
    );
    for field in ["not_before", "expires_at"] {
        put(
            field,
            &[
                "\"\"",
                "\"now\"",
                "\"2026-11-21\"",
                "\"2026-11-21T14:00:00\"",
                "\"2026-11-21T14:00:00+00:00\"",
                "\"2026-11-21T14:00:00+14:00\"",
                "\"2026-11-21T14:00:00.5Z\"",
                "\"2026-11-21T14:00:60Z\"",
                "\"2026-02-30T14:00:00Z\"",
                "\"2026-11-21T25:61:00Z\"",
                "\"2026-11-21t14:00:00z\"",
                "\"2026-11-21 14:00:00Z\"",
                "\"+12026-11-21T14:00:00Z\"",
                "\"-0001-11-21T14:00:00Z\"",
                "1795269600",
                "\"٢٠٢٦-11-21T14:00:00Z\"",
            ],
        );
    }
    put(
        "reason",
        &[
            "\"\"",
            "\"no\"",
            "\" spaces\"",
            "\"spaces \"",
            "\"two\\nlines\"",
            "\"tab\\tbed\"",
            "\"bell\\u0007s\"",
        ],
    );
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_out_of_their_range() {
    let mut listener = StoreFixture::open().await;
    let (_, good) = listener.destroy().await;
    let vectors = ranges(&good);
    assert!(vectors.len() > 90, "{}", vectors.len());
    for (name, text, code) in vectors {
        let (id, _) = listener.fresh();
        let blob = job(text.as_bytes(), &[&listener.alice]);
        listener.refuses_and_takes(&name, id, &blob, code).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_are_not_for_here() {
    let mut listener = StoreFixture::open().await;
    let epoch = listener.store.trust_state().await.unwrap().epoch.number();
    let epoch_is = |number: u32| (format!("\"host_epoch\":{epoch}"), format!("\"host_epoch\":{number}"));
    let mut cases: Vec<(String, (String, String), ErrorCode)> = vec![
        ("another host".to_owned(), (HOST.to_owned(), HOST.replace("7a02", "7a09")), NotYours),
        ("the epoch before".to_owned(), epoch_is(epoch - 1), JobEpoch),
        ("the epoch after".to_owned(), epoch_is(epoch + 1), JobEpoch),
        ("epoch 0".to_owned(), epoch_is(0), JobEpoch),
    ];
    let same = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    // A stolen hub swapped names and ids of two hosts or two guests; or an older command signed.
    for (name, change, code) in [
        ("another host's name", same("box7", "box8"), NotYours),
        ("another host's key", same("4f2a-9c01-77de-b3a8-0c11", "4f2a-9c01-77de-b3a8-0c12"), HostKeyChanged),
        ("no host's name", same(&format!("{OWN},"), ""), JobUnbound),
        ("another customer's guest", same("acme", "other"), TargetChanged),
        ("nobody's guest", same("\"customer\":\"acme\",", ""), JobUnbound),
    ] {
        cases.push((name.to_owned(), change, code));
    }
    for (name, change) in [
        ("another guest", same(GUEST, &GUEST.replace("7a03", "7a09"))),
        ("another VMID", same("\"vmid\":300", "\"vmid\":301")),
        ("no VMID", same("\"vmid\":300,", "")),
        ("another name", same("web-1", "web-2")),
    ] {
        cases.push((name.to_owned(), change, TargetChanged));
    }
    let null = same("\"vmid\":300", "\"vmid\":null");
    cases.push(("a null VMID".to_owned(), null, Range));
    let volume = same(
        "[\"tank:300/vm-300-disk-0.raw\"]",
        "[\"tank:300/vm-300-disk-0.raw\",\"tank:300/vm-300-disk-0.raw\"]",
    );
    cases.push(("a volume twice".to_owned(), volume, Range));
    for kind in ["host", "lxc", "qemu", "storage", ""] {
        let code = if kind == "host" { TargetKind } else { Version };
        let target = target();
        let other =
            if kind == "host" { "{\"kind\":\"host\"}".to_owned() } else { target.replacen("guest", kind, 1) };
        cases.push((format!("a target of kind {kind:?}"), (target, other), code));
    }
    for verb in ["destroy", "Destroy_guest", "destroy_guest ", "", "wipe_storage", "shell"] {
        let change = same("\"destroy_guest\"", &format!("\"{verb}\""));
        cases.push((format!("the verb {verb:?}"), change, Version));
    }
    for (verb, args, code) in [
        ("adopt_guest", "{}", Missing),
        ("adopt_guest", "{\"customer\":\"acme\",\"golden\":\"2026.11.1\"}", TargetChanged),
        ("adopt_guest", "{\"customer\":\"ACME\",\"golden\":\"2026.11.1\"}", Range),
        ("adopt_guest", "{\"customer\":\"acme\",\"golden\":\"latest\"}", Range),
        ("adopt_guest", "{\"customer\":\"acme\",\"golden\":\"2026.11.1\",\"force\":true}", UnknownField),
        ("reassign_volume", "{}", Missing),
        ("reassign_volume", HANDS_NOWHERE, Range),
        ("reassign_volume", HANDS_TO_ITSELF, Forbidden),
        ("reassign_volume", HANDS_TO_NO_ONE, TargetChanged),
        ("rebase_guest", "{}", Missing),
        ("rebase_guest", "{\"version\":\"latest\",\"sha256\":\"ab\"}", Range),
        ("rebase_guest", "{\"version\":\"2026.12.1\",\"sha256\":\"ab\"}", Range),
        ("approve_release", RELEASE, TargetKind),
        ("restore", "{\"archive\":\"/etc/passwd\"}", Range),
        ("restore", "{\"archive\":\"backup2:backup/../x\"}", Range),
        ("rollback", "{\"snapshot\":\"a b\"}", Range),
        ("swap_guest", "{}", Missing),
        ("swap_guest", SWAPS_FOR_NO_ONE, TargetChanged),
        ("swap_guest", SWAPS_BY_FORCE, UnknownField),
        ("cancel", "{\"job\":\"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02\"}", TargetKind),
        ("policy_update", "{\"signers\":\"\",\"policy\":\"\"}", TargetKind),
    ] {
        let change = same("\"destroy_guest\",\"args\":{}", &format!("\"{verb}\",\"args\":{args}"));
        cases.push((format!("{verb} {args}"), change, code));
    }
    for (name, (from, to), code) in cases {
        let (id, good) = listener.destroy().await;
        let text = replaced(&good, &from, &to);
        let blob = job(text.as_bytes(), &[&listener.alice]);
        listener.refuses_and_takes(&name, id, &blob, code).await;
    }
    let (_, good) = listener.destroy().await;
    let (other, _) = listener.fresh();
    let blob = job(good.as_bytes(), &[&listener.alice]);
    listener.refuses_and_takes("left under another id", other, &blob, NotYours).await;
}

const HANDS_NOWHERE: &str = "{\"volume\":\"../x\",\"to\":{\"uid\":\"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a04\",\"vmid\":301,\
     \"fingerprint\":{\"name\":\"web-2\",\"customer\":\"acme\",\"volumes\":[]}}}";
const HANDS_TO_ITSELF: &str = "{\"volume\":\"tank:300/vm-300-disk-0.raw\",\"to\":{\"uid\":\"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03\",\"vmid\":300,\
     \"fingerprint\":{\"name\":\"web-1\",\"customer\":\"acme\",\"volumes\":[\"tank:300/vm-300-disk-0.raw\"]}}}";
const HANDS_TO_NO_ONE: &str = "{\"volume\":\"tank:300/vm-300-disk-0.raw\",\"to\":{\"uid\":\"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a04\",\"vmid\":301,\
     \"fingerprint\":{\"name\":\"web-2\",\"customer\":\"acme\",\"volumes\":[]}}}";

const SWAPS_FOR_NO_ONE: &str =
    "{\"copy\":{\"vmid\":301,\"fingerprint\":{\"name\":\"web-1-copy\",\"volumes\":[]}},\"leaves\":[]}";
const SWAPS_BY_FORCE: &str = "{\"copy\":{\"vmid\":301,\"fingerprint\":{\"name\":\"web-1-copy\",\"volumes\":[]}},\"leaves\":[],\"force\":true}";

const RELEASE: &str = "{\"kind\":\"golden\",\"version\":\"2026.11.1\",\"sha256\":\"abababababababababababababababababababababababababababababababab\"}";

/// A release is named by kind, version and digest, each in its only valid form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_that_are_none() {
    let mut listener = StoreFixture::open().await;
    let order =
        |args: &str| format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"approve_release\",\"args\":{args}");
    let (golden, sha) = ("\"2026.11.1\"", "abababababababababababababababababababababababababababababababab");
    let cases = [
        ("a kind that is none", "\"golden\"", "\"stack\"", Version),
        ("a kind in capitals", "\"golden\"", "\"Golden\"", Version),
        ("no version", golden, "\"\"", Range),
        ("a version with a space", golden, "\"2026.11.1 \"", Range),
        ("a version that is a path", golden, "\"../2026.11.1\"", Range),
        ("a version of a controller", golden, "\"0.1.0\"", Range),
        ("the newest", golden, "\"latest\"", Range),
        ("a month of one digit", golden, "\"2026.1.1\"", Range),
        (
            "a digest in capitals",
            sha,
            "ABababababababababababababababababababababababababababababababab",
            Range,
        ),
        ("a short digest", sha, "abababababababababababababababab", Range),
        (
            "a digest of another name",
            sha,
            "sha256:ababababababababababababababababababababababababababababab",
            Range,
        ),
        ("no digest", sha, "", Range),
        (
            "a digest that is null",
            "\"abababababababababababababababababababababababababababababababab\"",
            "null",
            Range,
        ),
        ("an archive beside it", "\"kind\"", "\"archive\":\"local:backup/x\",\"kind\"", UnknownField),
        ("a version twice", "\"version\"", "\"version\":\"2026.11.1\",\"version\"", DuplicateKey),
        ("without a kind", "\"kind\":\"golden\",", "", Missing),
    ];
    for (name, from, to, code) in cases {
        let (id, payload) = listener.payload(&order(&replaced(RELEASE, from, to))).await;
        let blob = job(payload.as_bytes(), &[&listener.alice]);
        listener.refuses(name, id, &blob, code).await;
        let (id, payload) = listener.payload(&order(RELEASE)).await;
        let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
        assert!(matches!(outcome, agent_store::job_intake::Outcome::Taken), "{name}: {outcome:?}");
    }
    // A controller's versions have another form.
    let controller = replaced(&replaced(RELEASE, "golden", "controller"), "2026.11.1", "0.1.0");
    let (id, payload) = listener.payload(&order(&controller)).await;
    let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
    assert!(matches!(outcome, agent_store::job_intake::Outcome::Taken), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_are_not_for_now() {
    let mut listener = StoreFixture::open().await;
    let times: [(&str, i64, i64, ErrorCode); 12] = [
        ("it ends now", -3_600, 60, JobExpired),
        ("it ended a second ago", -3_600, 59, JobExpired),
        ("it ended years ago", -3_600 - 300_000_000, -300_000_000, JobExpired),
        ("it begins in a moment", 62, 3_700, JobNotYet),
        ("it begins in a year", 31_536_000, 31_539_600, JobNotYet),
        ("it lives for ten years", 0, 315_360_000, JobLife),
        ("it lives a second too long", 0, 86_401, JobLife),
        ("it lives not at all", 0, 0, JobLife),
        ("it ends before it begins", 0, -1, JobLife),
        ("its delay outlives it", 0, 600, JobExpired),
        ("its delay ends with it", 0, 660, JobExpired),
        ("its delay outlives it by a second", 0, 659, JobExpired),
    ];
    for (name, from, until, code) in times {
        let (id, good) = listener.destroy().await;
        // The fixture lets a minute pass before it judges.
        let at = |offset: i64| {
            jiff::Timestamp::from_second(listener.now.as_second() + offset).unwrap().to_string()
        };
        let text = replaced(&good, &at(-60), &at(from));
        let text = replaced(&text, &at(3_600), &at(until));
        let blob = job(text.as_bytes(), &[&listener.alice]);
        listener.refuses_and_takes(name, id, &blob, code).await;
    }
    for back in [181_i64, 3_600, 31_536_000] {
        let real = listener.now;
        // As a synchronised clock that ran evenly lets it move.
        listener.store.note_time(real).await.unwrap();
        listener.pass(-back);
        let (id, good) = listener.destroy().await;
        let blob = job(good.as_bytes(), &[&listener.alice]);
        listener.refuses(&format!("the clock stands {back} s behind"), id, &blob, ClockBehind).await;
        // With the clock corrected, an unchanged job passes.
        listener.now = real;
        listener.takes("the clock is right again").await;
    }
}
