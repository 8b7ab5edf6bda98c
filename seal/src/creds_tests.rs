//! Tests of sealing, opening and refusing credentials.

use std::io::Write as _;

use age::Encryptor;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::code::ErrorCode;
use serde_json::{Value, json};

use super::*;

const KEY_FILE: &[u8] = include_bytes!("../tests/backup-key.json");

fn name(text: &str) -> TargetName {
    text.parse().unwrap()
}

fn share(server: &str) -> Backend {
    serde_json::from_value(json!({ "cifs": { "server": server, "share": "bk" } })).unwrap()
}

fn server() -> Backend {
    let key = BackupKey::parse(KEY_FILE).unwrap();
    serde_json::from_value(json!({ "pbs": { "server": "10.66.0.1", "datastore": "store1", "namespace": "hf",
        "fingerprint": vec!["86"; 32].join(":"), "key": key.fingerprint() } }))
    .unwrap()
}

fn password() -> Secret {
    Secret::new("correct \"horse\", battery".to_owned())
}

fn of_share() -> Creds {
    let context = SealContext { target: &name("nas1"), backend: &share("nas") };
    Creds::new(context, "backup".to_owned(), password(), None).unwrap()
}

/// As anybody can seal anything who knows the public key.
fn sealed(plain: &[u8], readers: &[&age::x25519::Identity]) -> Sealed {
    let recipients: Vec<_> = readers.iter().map(|identity| identity.to_public()).collect();
    let of = recipients.iter().map(|one| one as &dyn age::Recipient);
    let mut file = Vec::new();
    let mut writer = Encryptor::with_recipients(of).unwrap().wrap_output(&mut file).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish().unwrap();
    Sealed::try_from(STANDARD.encode(file)).unwrap()
}

fn open(sealed: &Sealed, key: &HostKey) -> Result<Creds, OpenError> {
    Creds::open(sealed, key, SealContext { target: &name("nas1"), backend: &share("nas") })
}

#[test]
fn credentials_open_for_their_own_target_only() {
    let key = HostKey::parse(HostKey::generate().to_text().expose()).unwrap();
    let sealed = of_share().seal(&key.recipient().unwrap()).unwrap();
    let opened = open(&sealed, &key).unwrap();
    assert_eq!((opened.user(), opened.password().expose()), ("backup", password().expose()));
    for (target, backend) in [("nas2", share("nas")), ("nas1", share("evil")), ("nas1", server())] {
        let refused = Creds::open(&sealed, &key, SealContext { target: &name(target), backend: &backend });
        assert_eq!(refused.unwrap_err().code(), ErrorCode::SealTarget, "{target} {backend}");
    }
    assert!(!format!("{opened:?} {key:?}").contains("horse"));
    assert!(!format!("{key:?}").contains("AGE"));
}

#[test]
fn a_backup_server_gets_the_key_that_was_approved() {
    let key = HostKey::generate();
    let (target, backend) = (name("off1"), server());
    let context = SealContext { target: &target, backend: &backend };
    let backup_key = || Some(BackupKey::parse(KEY_FILE).unwrap());
    let creds = Creds::new(context, "pve@pbs!bk".to_owned(), password(), backup_key()).unwrap();
    let opened = Creds::open(&creds.seal(&key.recipient().unwrap()).unwrap(), &key, context).unwrap();
    assert_eq!(opened.key().unwrap().fingerprint(), BackupKey::parse(KEY_FILE).unwrap().fingerprint());
    let other = serde_json::to_string(&backend).unwrap().replace("52:28", "52:29");
    let other: Backend = serde_json::from_str(&other).unwrap();
    for (backend, backup_key) in [(&other, backup_key()), (&backend, None), (&share("nas"), backup_key())] {
        let context = SealContext { target: &target, backend };
        assert!(Creds::new(context, "u".to_owned(), password(), backup_key).is_err(), "{backend}");
    }
    let disk: Backend =
        serde_json::from_value(json!({ "nfs": { "server": "nas", "export": "/srv" } })).unwrap();
    assert!(
        Creds::new(SealContext { target: &target, backend: &disk }, "u".to_owned(), password(), None)
            .is_err()
    );
}

#[test]
fn users_and_passwords_with_control_characters_are_refused() {
    let (target, backend) = (name("nas1"), share("nas"));
    let context = SealContext { target: &target, backend: &backend };
    for user in ["", "a b", "a,uid=0", "a\nb", "a%b", &"x".repeat(129)] {
        assert!(Creds::new(context, user.to_owned(), password(), None).is_err(), "{user:?}");
    }
    for word in ["", "a\nb", "a\0", &"x".repeat(257)] {
        let word = Secret::new(word.to_owned());
        assert!(Creds::new(context, "u".to_owned(), word, None).is_err());
    }
}

#[test]
fn every_hostile_content_has_its_code() {
    let identity = age::x25519::Identity::generate();
    let key = HostKey::parse(age::secrecy::ExposeSecret::expose_secret(&identity.to_string())).unwrap();
    let good = serde_json::to_value(of_share()).unwrap();
    let with = |field: &str, value: Value| {
        let mut value_of = good.clone();
        value_of[field] = value;
        value_of.to_string()
    };
    let without = |field: &str| {
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove(field);
        less.to_string()
    };
    assert!(open(&sealed(good.to_string().as_bytes(), &[&identity]), &key).is_ok(), "the twin that is right");
    let twice = good.to_string().replacen('{', "{\"user\":\"root\",", 1);
    let cases = [
        (String::new(), ErrorCode::Syntax),
        ("{".to_owned(), ErrorCode::Syntax),
        (format!("{good} {good}"), ErrorCode::Syntax),
        (format!("\u{feff}{good}"), ErrorCode::Syntax),
        (format!("[{good}]"), ErrorCode::Range),
        (twice, ErrorCode::DuplicateKey),
        (with("options", json!("vers=1.0")), ErrorCode::UnknownField),
        (with("schema", json!("holdfast.storage-creds/v2")), ErrorCode::Version),
        (with("target", json!("nas2")), ErrorCode::SealTarget),
        (with("backend", serde_json::to_value(share("evil")).unwrap()), ErrorCode::SealTarget),
        (with("user", json!("a,uid=0")), ErrorCode::Range),
        (with("password", json!("a\nb")), ErrorCode::Range),
        (with("password", json!(null)), ErrorCode::Range),
        (with("key", serde_json::from_slice(KEY_FILE).unwrap()), ErrorCode::Range),
        (without("password"), ErrorCode::Missing),
        (without("backend"), ErrorCode::Missing),
    ];
    for (plain, code) in cases {
        let found = open(&sealed(plain.as_bytes(), &[&identity]), &key).map(|_| ());
        assert_eq!(found.unwrap_err().code(), code, "{plain}");
    }
}

#[test]
fn every_hostile_file_has_its_code() {
    let (mine, other) = (age::x25519::Identity::generate(), age::x25519::Identity::generate());
    let key = HostKey::parse(age::secrecy::ExposeSecret::expose_secret(&mine.to_string())).unwrap();
    let plain = serde_json::to_vec(&of_share()).unwrap();
    let refused = |sealed: &Sealed| open(sealed, &key).unwrap_err().code();
    assert_eq!(refused(&sealed(&plain, &[&other])), ErrorCode::SealKey);
    assert_eq!(refused(&sealed(&plain, &[&mine, &other])), ErrorCode::SealKey);
    assert_eq!(refused(&sealed(&plain, &[&mine, &mine])), ErrorCode::SealKey);
    let by_hand = |text: &str| Sealed::try_from(STANDARD.encode(text)).unwrap();
    for (text, code) in [
        ("age-encryption.org/v1\n-> scrypt c2FsdHNhbHRzYWx0c2E 22\nAAAA\n--- AAAA\nxxxx", ErrorCode::SealKey),
        ("age-encryption.org/v1\n-> ssh-ed25519 AAAA AAAA\nAAAA\n--- AAAA\nxxxx", ErrorCode::SealBroken),
        ("age-encryption.org/v1\n--- AAAA\nxxxx", ErrorCode::SealBroken),
        ("age-encryption.org/v1\n", ErrorCode::SealBroken),
        ("age-encryption.org/v10", ErrorCode::SealBroken),
    ] {
        assert_eq!(refused(&by_hand(text)), code, "{text}");
    }
    let file = STANDARD.decode(sealed(&plain, &[&mine]).as_str()).unwrap();
    for cut in 21..file.len() {
        let sealed = Sealed::try_from(STANDARD.encode(&file[..cut])).unwrap();
        assert_eq!(refused(&sealed), ErrorCode::SealBroken, "cut at {cut}");
    }
    for more in [&b"\n"[..], b"x", &file] {
        let sealed = Sealed::try_from(STANDARD.encode([&file, more].concat())).unwrap();
        assert_eq!(refused(&sealed), ErrorCode::SealBroken);
    }
    for at in 22..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        let Ok(sealed) = Sealed::try_from(STANDARD.encode(changed)) else { continue };
        assert!(matches!(refused(&sealed), ErrorCode::SealBroken | ErrorCode::SealKey), "changed at {at}");
    }
}

#[test]
fn armoured_or_oversized_texts_are_refused() {
    let armoured = "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n";
    for text in [armoured.to_owned(), STANDARD.encode(armoured), "YWdlLWVuY3J5cHRpb24ub3JnL3Yx".repeat(200)] {
        assert!(Sealed::try_from(text).is_err());
    }
    let recipient = HostKey::generate().recipient().unwrap();
    let last = recipient.as_str().chars().last().unwrap();
    let wrong = format!("{}{}", &recipient.as_str()[..61], if last == 'q' { 'p' } else { 'q' });
    let wrong = HostRecipient::try_from(wrong).unwrap();
    assert!(matches!(of_share().seal(&wrong), Err(SealError::Recipient(_))));
}
