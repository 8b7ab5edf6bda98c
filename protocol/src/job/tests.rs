//! Tests of payloads: one whole, and each way to be wrong.

use super::*;

const GOOD: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":1,"host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"},"target":{"kind":"guest","uid":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","vmid":300,"fingerprint":{"name":"web-1","customer":"acme","volumes":["tank:300/vm-300-disk-0.raw"]}},"verb":"destroy_guest","args":{},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the customer left"}"#;

fn code(text: &str) -> ErrorCode {
    Payload::parse(text.as_bytes()).map(|_| ()).unwrap_err().code()
}

/// The good one with one thing changed.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn what_is_written_reads_back_as_the_same_bytes() {
    let payload = Payload::parse(GOOD.as_bytes()).unwrap();
    assert_eq!(payload.act.verb(), Verb::DestroyGuest);
    assert_eq!(payload.to_json().unwrap(), GOOD);
}

/// Jobs that older commands signed can still be read; the receiver reports what is missing.
#[test]
fn a_job_of_an_older_command_says_less() {
    let old = with(r#","host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"}"#, "");
    let old = old.replacen(r#""customer":"acme","#, "", 1);
    let payload = Payload::parse(old.as_bytes()).unwrap();
    assert_eq!((&payload.host, payload.to_json().unwrap().as_str()), (&None, old.as_str()));
    let Target::Guest { fingerprint, .. } = payload.target else { panic!("a guest") };
    assert_eq!(fingerprint.customer, None);
}

fn storage(name: &str) -> String {
    let backend = r#"{"usb":{"uuid":"0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b"}}"#;
    format!(r#"{{"name":"{name}","backend":{backend},"class":"slow","role":"local-backup"}}"#)
}

/// A value that is not there is not written as `null`, and no unknown field is accepted.
#[test]
fn a_storage_is_signed_for_whole_and_in_one_spelling() {
    let (host, guest) =
        (r#"{"kind":"host"}"#, &GOOD[GOOD.find(r#"{"kind""#).unwrap()..GOOD.find(r#","verb""#).unwrap()]);
    let text = |args: &str| {
        let order = format!(r#""verb":"attach_storage","args":{args}"#);
        with(r#""verb":"destroy_guest","args":{}"#, &order).replacen(guest, host, 1)
    };
    let new = storage("usb1");
    assert!(Payload::parse(text(&format!(r#"{{"to":{new}}}"#)).as_bytes()).is_ok());
    assert!(Payload::parse(text(&format!(r#"{{"from":{new},"to":{new}}}"#)).as_bytes()).is_ok());
    let more = |what: &str| format!(r#"{{"to":{}}}"#, new.replacen('{', &format!("{{{what},"), 1));
    for (args, wanted) in [
        (format!(r#"{{"from":null,"to":{new}}}"#), ErrorCode::Range),
        ("{}".to_owned(), ErrorCode::Missing),
        (format!(r#"{{"from":{new}}}"#), ErrorCode::Missing),
        (more(r#""path":"/etc""#), ErrorCode::UnknownField),
        (more(r#""options":["suid"]"#), ErrorCode::UnknownField),
        (more(r#""creds":null"#), ErrorCode::Range),
        (more(r#""name":"usb2""#), ErrorCode::DuplicateKey),
        (format!(r#"{{"to":{}}}"#, storage("../x")), ErrorCode::Range),
        (format!(r#"{{"to":{}}}"#, new.replacen("0b5f", "0B5F", 1)), ErrorCode::Range),
    ] {
        assert_eq!(code(&text(&args)), wanted, "{args}");
    }
}

#[test]
fn every_verb_has_its_own_arguments_and_kind_of_target() {
    let sha = "a".repeat(64);
    let host = r#"{"kind":"host"}"#;
    let guest = &GOOD[GOOD.find(r#"{"kind""#).unwrap()..GOOD.find(r#","verb""#).unwrap()];
    for verb in Verb::ALL {
        let args = match verb {
            Verb::AdoptGuest => r#"{"customer":"acme","golden":"2026.11.1"}"#.to_owned(),
            Verb::AllowGrowth => {
                let measure = |gib: u32| format!(r#"{{"cores":2,"memory_mib":512,"swap_mib":0,"rootfs_gib":{gib},"volumes_gib":{{"db":4}}}}"#);
                format!(r#"{{"guest":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","name":"web-1","from":{},"to":{}}}"#, measure(8), measure(65_536))
            }
            Verb::DestroyGuest => "{}".to_owned(),
            Verb::RestoreHost => format!(r#"{{"new_key":"spki/sha256:{sha}"}}"#),
            Verb::WithdrawRestore => format!(r#"{{"order":"{sha}"}}"#),
            Verb::DeleteBackup => {
                r#"{"archive":"backup2:backup/vzdump-lxc-300.tar.zst","loses":["newest","only_holder"]}"#.to_owned()
            }
            Verb::BackupNow | Verb::RestoreTest => r#"{"tier":"off_site"}"#.to_owned(),
            Verb::ApproveRelease => format!(r#"{{"kind":"golden","version":"2026.11.2","sha256":"{sha}"}}"#),
            Verb::AttachStorage => format!(r#"{{"to":{}}}"#, storage("usb1")),
            Verb::DetachStorage => format!(r#"{{"from":{},"to":"disconnected"}}"#, storage("usb1")),
            Verb::BreakGlass => format!(r#"{{"way":"tunnel","minutes":30,"key":"ssh-ed25519 {}","customers":["acme"]}}"#, "A".repeat(68)),
            Verb::SetTunnelToken => r#"{"tunnel":"cloudflared","sealed":"YWdlLWVuY3J5cHRpb24ub3JnL3YxCg==","copies":["YWdlLWVuY3J5cHRpb24ub3JnL3YxCg=="]}"#.to_owned(),
            Verb::Cancel => r#"{"job":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01"}"#.to_owned(),
            Verb::DiscardCopy => r#"{"copy":{"vmid":301,"fingerprint":{"name":"web-1-former","volumes":["tank:301/vm-301-disk-0.raw"]}}}"#.to_owned(),
            Verb::RebaseGuest => format!(r#"{{"version":"2026.11.2","sha256":"{sha}","leaves":{{"listed":["/srv/wiki"]}}}}"#),
            Verb::ReassignVolume => r#"{"volume":"tank:300/vm-300-disk-1.raw","to":{"uid":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a04","vmid":301,"fingerprint":{"name":"web-2","volumes":["tank:301/vm-301-disk-0.raw"]}}}"#.to_owned(),
            Verb::LoosenPolicy => {
                let volumes = |kind: &str| format!(r#"{{"tiers":{{}},"volumes":[{{"name":"db","kind":{kind}}}]}}"#);
                let none = volumes(r#"{"bulk":{"none":"to save room"}}"#);
                format!(r#"{{"from":{},"to":{none}}}"#, volumes(r#""hot""#))
            }
            Verb::PolicyUpdate => r#"{"signers":"…","policy":"…"}"#.to_owned(),
            Verb::ReleaseBrake => format!(r#"{{"generation":7,"document":"{sha}","changes":[{{"guest":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","name":"web-1","operation":"stop"}}]}}"#),
            Verb::Restore => r#"{"archive":"backup2:backup/vzdump-lxc-300.tar.zst"}"#.to_owned(),
            Verb::Rollback => r#"{"snapshot":"before-update"}"#.to_owned(),
            Verb::SwapGuest => r#"{"copy":{"vmid":301,"fingerprint":{"name":"web-1-copy","volumes":["tank:301/vm-301-disk-0.raw"]}},"leaves":["tank:300/vm-300-disk-2.raw"]}"#.to_owned(),
        };
        let (right, wrong) = match verb.target() {
            TargetKind::Guest => (guest, host),
            TargetKind::Host => (host, guest),
        };
        let order = format!(r#""verb":"{}","args":{args}"#, verb.as_str());
        let text = with(r#""verb":"destroy_guest","args":{}"#, &order);
        let good = text.replacen(guest, right, 1);
        let payload = Payload::parse(good.as_bytes()).unwrap();
        assert_eq!(payload.act.verb(), *verb);
        assert_eq!(payload.to_json().unwrap(), good);
        assert_eq!(code(&text.replacen(guest, wrong, 1)), ErrorCode::TargetKind, "{verb:?}");
        let more = good.replacen(&args, &args.replacen('{', r#"{"force":true,"#, 1).replace(",}", "}"), 1);
        assert_eq!(code(&more), ErrorCode::UnknownField, "{more}");
    }
}

#[test]
fn shapes_that_are_not_a_job() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let cases = [
        (String::new(), ErrorCode::Syntax),
        ("{".to_owned(), ErrorCode::Syntax),
        (format!("\u{feff}{GOOD}"), ErrorCode::Syntax),
        (format!("{GOOD}\0"), ErrorCode::Syntax),
        (format!("{GOOD}{GOOD}"), ErrorCode::Syntax),
        (format!("[{GOOD}]"), ErrorCode::Range),
        (deep, ErrorCode::Range),
        ("x".repeat(BYTES_MAX + 1), ErrorCode::Size),
        (with(r#""host_epoch":1"#, r#""host_epoch":1,"host_epoch":1"#), ErrorCode::DuplicateKey),
        (with(r#""host_epoch":1"#, r#""host_epoch":1,"host\u005fepoch":2"#), ErrorCode::DuplicateKey),
        (with(r#""name":"web-1""#, r#""name":"web-1","name":"web-2""#), ErrorCode::DuplicateKey),
        (with(r#""name":"box7""#, r#""name":"box7","name":"box8""#), ErrorCode::DuplicateKey),
        (with(r#""name":"box7""#, r#""name":"box7","id":"x""#), ErrorCode::UnknownField),
        (with(r#""name":"box7","#, ""), ErrorCode::Missing),
        (with(r#""kind":"guest""#, r#""kind":"guest","kind":"guest""#), ErrorCode::DuplicateKey),
        (with(r#""host_epoch":1"#, r#""host_epoch":1,"also":1"#), ErrorCode::UnknownField),
        (with(r#""vmid":300"#, r#""vmid":300,"pool":"x""#), ErrorCode::UnknownField),
        (with(r#""host_epoch":1,"#, ""), ErrorCode::Missing),
        (with(r#","nonce":"00112233445566778899aabbccddeeff""#, ""), ErrorCode::Missing),
        (with("holdfast.job/v1", "holdfast.job/v2"), ErrorCode::Version),
        (with(r#""verb":"destroy_guest""#, r#""verb":"destroy""#), ErrorCode::Version),
    ];
    for (text, wanted) in cases {
        assert_eq!(code(&text), wanted, "{}", text.chars().take(300).collect::<String>());
    }
}

#[test]
fn values_out_of_their_range() {
    let at = "2026-11-21T14:00:00Z";
    let times = [
        "2026-11-21T14:00:00+00:00",
        "2026-11-21T14:00:00.0Z",
        "2026-11-21T14:00:60Z",
        "2026-02-30T14:00:00Z",
        "2026-11-21t14:00:00z",
        "2026-11-21 14:00:00Z",
        "+12026-11-21T14:00:00Z",
        "2026-11-21",
        "",
    ];
    let mut cases: Vec<String> = times.iter().map(|time| with(at, time)).collect();
    let nonce = "00112233445566778899aabbccddeeff";
    let zero = "0".repeat(32);
    for bad in
        [&nonce[..30], &nonce[..31], &nonce.to_uppercase(), &zero, &"a".repeat(130), "é".repeat(16).as_str()]
    {
        cases.push(with(nonce, bad));
    }
    for bad in ["null", "-1", "1.0", "1e0", "4294967296", r#""1""#] {
        cases.push(with(r#""host_epoch":1"#, &format!(r#""host_epoch":{bad}"#)));
    }
    for bad in ["99", r#""300""#, "1000000000", "[300]"] {
        cases.push(with(r#""vmid":300"#, &format!(r#""vmid":{bad}"#)));
    }
    let host = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02";
    for bad in ["*", "", &host[..8], &host.to_uppercase(), &host.replace('-', ""), &format!("{{{host}}}")] {
        cases.push(with(host, bad));
    }
    for bad in ["", "no", " spaces", "two\\nlines", &"x".repeat(501)] {
        cases.push(with("the customer left", bad));
    }
    cases.push(with("web-1", "web,1"));
    cases.push(with("acme", "ACME"));
    cases.push(with("box7", "Box7"));
    for bad in ["4F2A-9c01-77de-b3a8-0c11", "4f2a-9c01-77de-b3a8", "4f2a-9c01-77de-b3a8-0c1", ""] {
        cases.push(with("4f2a-9c01-77de-b3a8-0c11", bad));
    }
    cases.push(with(r#"{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"}"#, "null"));
    // Readable, and a second spelling of the same.
    cases.push(with(r#""vmid":300"#, r#""vmid":null"#));
    let fingerprint = r#"{"name":"web-1","customer":"acme","volumes":["tank:300/vm-300-disk-0.raw"]}"#;
    cases.push(with(fingerprint, r#"["web-1","acme",["tank:300/vm-300-disk-0.raw"]]"#));
    cases.push(with(
        r#"["tank:300/vm-300-disk-0.raw"]"#,
        r#"["tank:300/vm-300-disk-0.raw","tank:300/vm-300-disk-0.raw"]"#,
    ));
    for text in &cases {
        assert_eq!(code(text), ErrorCode::Range, "{text}");
    }
}

#[test]
fn a_job_lives_a_second_to_a_day() {
    let until = "2026-11-21T15:00:00Z";
    for good in ["2026-11-21T14:00:01Z", "2026-11-22T14:00:00Z"] {
        assert!(Payload::parse(with(until, good).as_bytes()).is_ok(), "{good}");
    }
    for bad in ["2026-11-21T14:00:00Z", "2026-11-21T13:59:59Z", "2026-11-22T14:00:01Z"] {
        assert_eq!(code(&with(until, bad)), ErrorCode::JobLife, "{bad}");
    }
}

#[test]
fn a_signed_job_travels_whole() {
    let job = SignedJob {
        payload: GOOD.as_bytes().to_vec(),
        signatures: vec!["one".to_owned()],
        consents: Vec::new(),
    };
    let text = job.to_json().unwrap();
    assert_eq!(SignedJob::parse(text.as_bytes()).unwrap(), job);
    let code = |text: &str| SignedJob::parse(text.as_bytes()).unwrap_err().code();
    assert_eq!(code(&text.replace(r#"["one"]"#, "[]")), ErrorCode::Range);
    assert_eq!(
        code(&text.replace(r#"["one"]"#, &format!("[{}1]", "1,".repeat(8)).replace('1', r#""s""#))),
        ErrorCode::Range
    );
    for bad in ["e30", "e30=\\n", "e30 =", "-_==", "e31="] {
        let start = text.find(r#""payload":""#).unwrap() + 11;
        let end = start + text[start..].find('"').unwrap();
        assert_eq!(code(&format!("{}{bad}{}", &text[..start], &text[end..])), ErrorCode::Syntax, "{bad}");
    }
}

#[test]
fn a_draft_becomes_the_payload_that_is_signed() {
    let payload = Payload::parse(GOOD.as_bytes()).unwrap();
    let draft = Draft { target: payload.target.clone(), act: payload.act.clone() };
    let text = draft.to_json().unwrap();
    assert!(
        text.starts_with(r#"{"schema":"holdfast.job-draft/v1","verb":"destroy_guest","target":"#),
        "{text}"
    );
    assert_eq!(Draft::parse(text.as_bytes()).unwrap(), draft);
    let order = Order {
        job_id: payload.job_id,
        host_id: payload.host_id,
        host_epoch: payload.host_epoch,
        host: payload.host.clone(),
        not_before: payload.not_before,
        expires_at: payload.expires_at,
        nonce: payload.nonce.clone(),
        reason: payload.reason.clone(),
    };
    assert_eq!(draft.ordered(order).to_json().unwrap(), GOOD);
    // A draft is no job, and a job is no draft.
    assert_eq!(code(&text), ErrorCode::Version);
    assert_eq!(Draft::parse(GOOD.as_bytes()).unwrap_err().code(), ErrorCode::Version);
    let host = text.replace(
        &text[text.find(r#"{"kind""#).unwrap()..text.find(r#","args""#).unwrap()],
        r#"{"kind":"host"}"#,
    );
    assert_eq!(Draft::parse(host.as_bytes()).unwrap_err().code(), ErrorCode::TargetKind);
}

#[test]
fn losses_of_a_backup_have_the_words_of_the_command_line() {
    let words = crate::job::act::BackupLoss::ALL.map(crate::job::act::BackupLoss::as_str);
    assert_eq!(words, ["newest", "newest-proved", "only-holder"]);
}
