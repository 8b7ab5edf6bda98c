//! Tests of `agentd recover` at a terminal.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use holdfast_protocol::job::HostEpoch;
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{CodeNumber, Context, Escrow};
use holdfast_recovery::sheet::text;
use holdfast_recovery::word::Word;
use holdfast_seal::backup_key::BackupKey;

use crate::terminal::at_terminal;

const KEY: &[u8] = include_bytes!("../../../seal/tests/backup-key.json");

const FIRST: &str = "The eleven words (not shown): ";
const AGAIN: &str = "All eleven words again (not shown): ";

fn words_of(first: &str) -> String {
    let drawn = [
        first,
        "t-shirt",
        "zoology",
        "yoyo",
        "crushed",
        "felt-tip",
        "manual",
        "onyx",
        "drop-down",
        "unhappy",
    ];
    let code = RecoveryCode::of(&drawn.map(|word| Word::spelt(word).unwrap())).unwrap();
    code.passphrase().unwrap().as_text().to_owned()
}

/// A folder with the wrapped key and, as `bin/agentd`, the program.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let context = Context {
        host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
        host_name: "box1".parse().unwrap(),
        customer: "acme".parse().unwrap(),
        epoch: HostEpoch::new(3),
        code: CodeNumber::try_from(2).unwrap(),
        made_at: "2026-11-22T13:00:00Z".to_owned().try_into().unwrap(),
    };
    let code = RecoveryCode::read(&words_of("abacus")).unwrap();
    let file = Escrow::new(context, BackupKey::parse(KEY).unwrap()).wrap(&code).unwrap();
    fs::write(folder.path().join("escrow-2.age"), file.to_text()).unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_agentd"), folder.path().join("bin/agentd")).unwrap();
    folder
}

/// The command as the sheet prints it.
fn printed() -> String {
    let steps = text::steps_with(CodeNumber::try_from(2).unwrap());
    let command = steps.into_iter().flat_map(|step| step.commands).find(|line| line.starts_with("agentd "));
    format!("PATH=bin:$PATH; {}", command.unwrap())
}

#[test]
fn with_slips_on_the_way_the_printed_command_gives_the_key() {
    let (folder, good) = (folder(), words_of("abacus"));
    let misspelt = good.replace("zoology", "zyoology");
    let swapped = good.replace("abacus t-shirt", "t-shirt abacus");
    let shouted = good.to_uppercase();
    let (begin, rest) = shouted.split_at(shouted.find("MANUAL").unwrap());
    let answers = [(FIRST, misspelt.as_str()), (AGAIN, &swapped), (AGAIN, begin), ("6 of 11, go on: ", rest)];
    let shown = at_terminal(folder.path(), &printed(), &answers);
    for reported in [
        "word 3 is not in the list of words: type it as on the sheet",
        "word 3: did you mean zoology",
        "perhaps words 1 and 2 swapped",
        "host         box1 (customer acme, epoch 3)",
        "sheet        2, made on 2026-11-22T13:00:00Z",
        "fingerprint  52:28:ea:c0:39:82:5d:0f:",
    ] {
        assert!(shown.contains(reported), "{reported:?} is not in {shown}");
    }
    for word in ["crushed", "felt-tip", "CRUSHED", "MANUAL", "zyoology"] {
        assert!(!shown.contains(word), "{word} is in {shown}");
    }
    let path = folder.path().join("key.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (taken, key) = (BackupKey::parse(&fs::read(path).unwrap()).unwrap(), BackupKey::parse(KEY).unwrap());
    assert_eq!(taken.to_json().unwrap().expose(), key.to_json().unwrap().expose());
}

#[test]
fn without_a_place_for_the_key_it_is_a_drill() {
    let (folder, good) = (folder(), words_of("abacus"));
    let other = words_of("abdomen");
    let line = "bin/agentd recover --from escrow-2.age";
    let shown = at_terminal(folder.path(), line, &[(FIRST, &other), (FIRST, &good)]);
    assert!(shown.contains("this code does not open this file"), "{shown}");
    assert!(shown.contains("The code opens the file."), "{shown}");
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bin", "escrow-2.age"], "nothing is written");
}

#[test]
fn ctrl_c_ends_it_and_leaves_a_terminal_that_shows_what_is_typed() {
    let folder = folder();
    let line = "bin/agentd recover --from escrow-2.age; echo code $?; stty -a";
    let shown = at_terminal(folder.path(), line, &[(FIRST, "abacus \u{3}")]);
    assert!(shown.contains("nothing more was typed") && shown.contains("code 74"), "{shown}");
    assert!(
        shown.contains(" echo ") && shown.contains("isig icanon") && shown.contains("eol = <undef>"),
        "{shown}"
    );
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_typed() {
    let folder = folder();
    fs::write(folder.path().join("there.json"), "").unwrap();
    fs::write(folder.path().join("broken.age"), "no file of age").unwrap();
    let good = fs::read(folder.path().join("escrow-2.age")).unwrap();
    fs::write(folder.path().join("long.age"), good.repeat(5)).unwrap();
    for (arguments, code, says) in [
        (&["--from", "gone.age"][..], 66, "gone.age cannot be read"),
        (&["--from", "broken.age"], 65, "the escrow file is damaged, or not an ASCII"),
        (&["--from", "long.age"], 65, "longer than 4096 bytes"),
        (&["--from", "escrow-2.age", "--to", "there.json"], 73, "there.json cannot be made"),
        (&["--from", "escrow-2.age"], 74, "the words are typed at a terminal, and there is none"),
    ] {
        #[expect(clippy::disallowed_methods, reason = "the program under test, without a terminal")]
        let output = Command::new("setsid")
            .args(["--wait", "bin/agentd", "recover"])
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{said}");
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(fs::read(folder.path().join("there.json")).unwrap(), b"");
}
