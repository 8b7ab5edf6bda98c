//! Tests of escrow files: substituted files, and stock `age` and `jq`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::HostEpoch;
use holdfast_recovery::escrow::{
    CodeNumber, Escrow, EscrowFile, Expected, FILE_BYTES_MAX, OpenError, Record, WrapError,
};
use holdfast_seal::backup_key::BackupKey;

use crate::fixtures::{KEYS, code, context, escrow, key, passphrase};
use crate::terminal::at_terminal;

/// A file as text, of unchecked bytes.
fn armoured(bytes: &[u8]) -> String {
    format!(
        "-----BEGIN AGE ENCRYPTED FILE-----\n{}\n-----END AGE ENCRYPTED FILE-----\n",
        STANDARD.encode(bytes)
    )
}

fn bytes_of(file: &EscrowFile) -> Vec<u8> {
    let text = file.to_text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(lines.concat()).unwrap()
}

fn parse_error(bytes: &[u8]) -> ErrorCode {
    EscrowFile::parse(armoured(bytes).as_bytes()).unwrap_err().code()
}

/// The second line of the header with another work factor.
fn with_work_factor(bytes: &[u8], factor: &str) -> Vec<u8> {
    let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0;
    let line = std::str::from_utf8(&bytes[..end]).unwrap();
    let (before, _) = line.rsplit_once(' ').unwrap();
    [format!("{before} {factor}").as_bytes(), &bytes[end..]].concat()
}

#[test]
fn a_file_opens_with_its_own_code_only() {
    let file = escrow().wrap(&code("abacus")).unwrap();
    assert!(file.to_text().len() < 1500, "{} bytes", file.to_text().len());
    let again = EscrowFile::parse(file.to_text().as_bytes()).unwrap();
    assert!(again == file);
    for wanted in [Expected::Any, Expected::Exactly(&escrow().record())] {
        let opened = again.open(&code("abacus"), wanted).unwrap();
        assert_eq!(opened.context(), &context());
        assert_eq!(opened.key().to_json().unwrap().expose(), key(0).to_json().unwrap().expose());
    }
    let error = again.open(&code("abdomen"), Expected::Any).unwrap_err();
    assert_eq!(error.code(), ErrorCode::EscrowCode);
    assert!(!format!("{:?}", escrow()).contains("1mvQQrO1"), "no log shows the key");
}

#[test]
fn a_file_with_another_context_is_refused_by_field() {
    let file = escrow().wrap(&code("abacus")).unwrap();
    let is = escrow().record();
    let of = |change: fn(&mut Record)| {
        let mut record = escrow().record();
        change(&mut record);
        record
    };
    let cases: [(Record, &str); 5] = [
        (
            of(|record| record.context.host = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a56".parse().unwrap()),
            "this file holds the key of box1, made on 2026-11-22T13:00:00Z",
        ),
        (of(|record| record.context.customer = "other".parse().unwrap()), "this file is for customer acme"),
        (of(|record| record.context.epoch = HostEpoch::new(4)), "of the host's epoch 3"),
        (
            of(|record| record.context.code = CodeNumber::try_from(3).unwrap()),
            "belongs to sheet 2, made on 2026",
        ),
        (of(|record| record.fingerprint = key(1).fingerprint().clone()), "has the fingerprint 52:28:ea"),
    ];
    assert!(file.open(&code("abacus"), Expected::Exactly(&is)).is_ok());
    // Whatever sheet it is of, by its key alone.
    assert!(file.open(&code("abacus"), Expected::Key(&is.fingerprint)).is_ok());
    let error = file.open(&code("abacus"), Expected::Key(key(1).fingerprint())).unwrap_err();
    assert!(matches!(error, OpenError::OtherKey { .. }), "{error}");
    for (wanted, says) in cases {
        let error = file.open(&code("abacus"), Expected::Exactly(&wanted)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::EscrowOther);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn work_factors_out_of_bounds_are_refused_before_deriving() {
    let good = bytes_of(&escrow().wrap(&code("abacus")).unwrap());
    for factor in ["0", "1", "10", "15", "21", "22", "63", "64", "255"] {
        let error = EscrowFile::parse(armoured(&with_work_factor(&good, factor)).as_bytes()).unwrap_err();
        assert!(matches!(error, OpenError::Work(read) if read.to_string() == factor), "{factor}: {error}");
    }
    for factor in ["", "256", "99999999999999999999", "-1", "016", "16 16", "sixteen", "1e1"] {
        assert_eq!(parse_error(&with_work_factor(&good, factor)), ErrorCode::EscrowBroken, "{factor}");
    }
    for factor in ["16", "20"] {
        assert!(EscrowFile::parse(armoured(&with_work_factor(&good, factor)).as_bytes()).is_ok(), "{factor}");
    }
}

#[test]
fn other_files_are_refused_before_opening() {
    let good = bytes_of(&escrow().wrap(&code("abacus")).unwrap());
    let header = good.windows(5).position(|five| five == b"\n--- ").unwrap();
    for cut in 0..=header {
        assert_eq!(parse_error(&good[..cut]), ErrorCode::EscrowBroken, "cut at {cut}");
    }
    let second = [&good[..=header], &good["age-encryption.org/v1\n".len()..]].concat();
    assert_eq!(parse_error(&second), ErrorCode::EscrowBroken, "two readers");
    for text in [
        "age-encryption.org/v1\n-> X25519 AAAA\nAAAA\n--- AAAA\nxxxx",
        "age-encryption.org/v2\n-> scrypt AAAA 16\nAAAA\n--- AAAA\nxxxx",
        "age-encryption.org/v1\n-> scrypt\nAAAA\n--- AAAA\nxxxx",
        "",
    ] {
        assert_eq!(parse_error(text.as_bytes()), ErrorCode::EscrowBroken, "{text}");
    }
    for text in [&b"\xff\xfe"[..], b"{}", b"-----BEGIN AGE ENCRYPTED FILE-----", &good] {
        assert_eq!(EscrowFile::parse(text).unwrap_err().code(), ErrorCode::EscrowBroken);
    }
    // The second would be within the bound in one line, and is not in lines of 64.
    for huge in [vec![0; FILE_BYTES_MAX], [&good[..], &vec![0; 3000 - good.len()]].concat()] {
        assert_eq!(parse_error(&huge), ErrorCode::Size);
    }
}

#[test]
fn a_file_that_was_cut_or_changed_does_not_open() {
    let good = bytes_of(&escrow().wrap(&code("abacus")).unwrap());
    // Each try costs the full work: some places of every part, and the last bytes.
    let mut refused = 0;
    for at in (22..good.len()).step_by(71).chain([good.len() - 1]) {
        let mut changed = good.clone();
        changed[at] ^= 1;
        for bytes in [&changed[..], &good[..at]] {
            if let Ok(file) = EscrowFile::parse(armoured(bytes).as_bytes()) {
                let code = file.open(&code("abacus"), Expected::Any).unwrap_err().code();
                assert!(matches!(code, ErrorCode::EscrowBroken | ErrorCode::EscrowCode), "{at}: {code}");
            }
            refused += 1;
        }
    }
    assert!(refused > 10);
}

/// A person types one line and the words, and has the key.
fn is_opened_by(program: &str, prompt: &str, number: usize) {
    let folder = tempfile::tempdir().unwrap();
    let code = code("abacus");
    let file = Escrow::new(context(), key(number)).wrap(&code).unwrap();
    std::fs::write(folder.path().join("escrow.age"), file.to_text()).unwrap();
    let line = format!("{program} -d escrow.age | jq -c .key > key.json");
    at_terminal(folder.path(), &line, &[(prompt, &passphrase(&code))]);
    let taken = std::fs::read(folder.path().join("key.json")).unwrap();
    let taken = BackupKey::parse(&taken).unwrap();
    assert_eq!(taken.fingerprint(), key(number).fingerprint());
    assert_eq!(taken.to_json().unwrap().expose(), key(number).to_json().unwrap().expose());
}

#[test]
fn stock_age_and_jq_give_the_key_with_the_words_typed() {
    for number in 0..KEYS.len() {
        is_opened_by("age", "Enter passphrase: ", number);
    }
}

/// The other program that speaks age. Debian has none of that name that does; `cargo ci --deep` builds the one of
/// crates.io.
#[test]
#[ignore = "wants rage: cargo ci --deep --unit rage"]
fn stock_rage_gives_the_same_key() {
    // At the terminal itself, whether this machine has a window for passphrases or not.
    is_opened_by("PINENTRY_PROGRAM= rage", "Type passphrase: ", 0);
}

#[test]
fn a_file_made_by_stock_age_opens() {
    let folder = tempfile::tempdir().unwrap();
    let code = code("abdomen");
    std::fs::write(folder.path().join("plain.json"), serde_json::to_vec(&escrow()).unwrap()).unwrap();
    let words = passphrase(&code);
    let answers = [
        ("Enter passphrase (leave empty to autogenerate a secure one): ", &words[..]),
        ("Confirm passphrase: ", &words),
    ];
    at_terminal(folder.path(), "age -p -a -o escrow.age plain.json", &answers);
    let file = EscrowFile::parse(&std::fs::read(folder.path().join("escrow.age")).unwrap()).unwrap();
    let opened = file.open(&code, Expected::Exactly(&escrow().record())).unwrap();
    assert_eq!(opened.key().fingerprint(), key(0).fingerprint());
}

#[test]
fn the_content_is_parsed_strictly_and_checked_against_its_key() {
    let good = serde_json::to_value(escrow()).unwrap();
    let with = |pointer: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let cases = [
        (with("/schema", "holdfast.escrow/v2".into()), ErrorCode::Version),
        (with("/context/code", 0.into()), ErrorCode::Range),
        (with("/key/data", STANDARD.encode([7_u8; 32]).into()), ErrorCode::Range),
        (with("/key/fingerprint", key(1).fingerprint().as_str().into()), ErrorCode::Range),
    ];
    for (content, expected) in cases {
        let parsed: Result<Escrow, _> =
            holdfast_protocol::json::parse("the escrow", content.to_string().as_bytes(), 4096);
        match parsed {
            Err(error) => assert_eq!(error.code(), expected, "{content}"),
            // A key that is not its fingerprint's is found by reckoning alone, when it is opened.
            Ok(escrow) => match escrow.wrap(&code("abacus")).unwrap_err() {
                WrapError::NotReadable(error) => assert_eq!(error.code(), expected, "{content}"),
                error => panic!("{error}"),
            },
        }
    }
}
