//! Tests of a lost host's key on its replacement.

use std::fs;

use agentd::plan::escrow::Purpose;
use agentd::port::host_replacement::HandOverFolder;
use holdfast_protocol::escrow::{EscrowBytes, EscrowFound};
use holdfast_protocol::restore::HandOver;
use holdfast_protocol::storage::{Backend, Sealed};
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{CodeNumber, Escrow, EscrowFile, Record};
use holdfast_seal::{Creds, SealContext};
use serde_json::{Value, json};

use crate::escrow::fake_hub::FakeHub;
use crate::escrow::memory::{self, Stuck};
use crate::escrow::place::{Place, key, other_key};
use crate::paper::{Paper, WORDS};
use crate::terminal::{at_terminal, typed_by};

const PASSWORD: &str = "Password of pve@pbs!bk at the backup server (not shown): ";
const AGAIN: &str = "All eleven words again (not shown): ";
const LINE: &str =
    "bin/agentd storage recover-key --document document.json --target off1 --user 'pve@pbs!bk'";

/// What the hub hands over: wrapped keys by their versions, and the lost host's document.
pub fn hand_over(place: &Place, wrapped: &[(u32, &Record, &EscrowFile)], desired: Option<&str>) {
    let found = |(number, record, file): &(u32, &Record, &EscrowFile)| -> EscrowFound {
        let bytes = EscrowBytes::try_from(file.to_text().into_bytes()).unwrap();
        let context = &record.context;
        let version = json!({ "number": number, "sha256": bytes.sha256(), "bytes": bytes.as_bytes().len(),
            "customer": context.customer, "epoch": context.epoch, "code": context.code,
            "fingerprint": record.fingerprint, "made_at": context.made_at, "kept_at": "2026-11-22T12:00:00Z" });
        serde_json::from_value(json!({ "version": version, "file": bytes })).unwrap()
    };
    let found: Vec<EscrowFound> = wrapped.iter().map(found).collect();
    let mut handed = json!({ "sections": {}, "escrows": found });
    if let Some(text) = desired {
        handed["desired"] = text.into();
    }
    let handed: HandOver = serde_json::from_value(handed).unwrap();
    HandOverFolder::of(&place.path().join("state")).keep(&handed).unwrap();
}

/// A host that took a lost one's place: its state holds what the hub handed over, and a person has the words on paper.
struct LostHost {
    place: Place,
    paper: Paper,
    record: Record,
    file: EscrowFile,
}

impl LostHost {
    fn new() -> Self {
        let place = Place::new();
        let code = RecoveryCode::generate().unwrap();
        let (number, _) = place.make(Purpose::First);
        let record = place.codes().codes.remove(0).record;
        assert_eq!(record.context.code, number);
        let file = Escrow::new(record.context.clone(), key()).wrap(&code).unwrap();
        // The identity of this host.
        drop(FakeHub::new().copies(&place));
        let lost = Self { place, paper: Paper::of(&code), record, file };
        lost.hand_over(&lost.record, &lost.file);
        lost.document(Some(key().fingerprint().as_str()));
        lost
    }

    /// As the hub says it, whether it is true or not.
    fn hand_over(&self, record: &Record, file: &EscrowFile) {
        hand_over(&self.place, &[(4, record, file)], None);
    }

    fn document(&self, key: Option<&str>) {
        let mut backend = json!({ "pbs": { "server": "10.66.0.1", "datastore": "store1", "namespace": "hf",
            "fingerprint": vec!["86"; 32].join(":") } });
        if let Some(key) = key {
            backend["pbs"]["key"] = key.into();
        }
        let page = json!({ "storage": [{ "name": "off1", "backend": backend, "creds": "sealed for the lost box" }] });
        fs::write(self.place.path().join("document.json"), page.to_string()).unwrap();
    }

    /// What is in the state folder, except what the running agent writes about itself.
    fn left(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.place.path().join("state");
        let mut all = Vec::new();
        let mut folders = vec![state.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() && !entry.file_name().to_string_lossy().starts_with("agent.db") {
                    all.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
                }
            }
        }
        all.sort();
        all
    }

    /// Runs the command to its refusal, and gives what was shown; nothing was changed or sealed.
    fn refused(&self, line: &str) -> String {
        let before = self.left();
        let mut typed = |fresh: &str| match () {
            () if fresh.ends_with(" at the backup server (not shown): ") => Some("secret".to_owned()),
            () => fresh.ends_with(WORDS).then(|| self.paper.whole()),
        };
        let shown = typed_by(self.place.path(), &format!("! {line}"), &mut typed);
        assert!(!shown.contains("\"creds\""), "{shown}");
        assert_eq!(self.left(), before);
        self.place.nothing_of(&self.paper.words, &[&shown]);
        shown
    }
}

/// What was printed opens with this host's key alone, as what `make-key` prints does.
fn opens(place: &Place, made: &Value) {
    let backend: Backend = serde_json::from_value(made["backend"].clone()).unwrap();
    let sealed: Sealed = serde_json::from_value(made["creds"].clone()).unwrap();
    let name = "off1".parse().unwrap();
    let creds =
        Creds::open(&sealed, &place.host_key(), SealContext { target: &name, backend: &backend }).unwrap();
    assert_eq!((creds.user(), creds.password().expose()), ("pve@pbs!bk", "secret"));
    assert_eq!(creds.key().unwrap().to_json().unwrap().expose(), key().to_json().unwrap().expose());
}

#[test]
fn typed_with_slips_it_is_sealed_to_this_box_and_is_nowhere_else() {
    let lost = LostHost::new();
    let before = lost.left();
    let good = lost.paper.whole();
    let first = &lost.paper.words[0];
    let misspelt = good.replacen(first, &format!("{first}qx"), 1);
    let mut swapped = lost.paper.words.clone();
    swapped.swap(3, 4);
    let swapped = swapped.join(" ");
    let answers =
        [(PASSWORD, "secret"), (WORDS, misspelt.as_str()), (AGAIN, &swapped), (AGAIN, &good.to_uppercase())];
    let line = format!("{LINE} --output json > made.json");
    let shown = at_terminal(lost.place.path(), &line, &answers);
    let sheet = format!("Recovery code of sheet {}", lost.record.context.code);
    for reported in
        [sheet.as_str(), "word 1 is not in the list", "perhaps words 4 and 5 swapped", "sealed to this box"]
    {
        assert!(shown.contains(reported), "{reported:?} is not in {shown}");
    }
    let text = fs::read_to_string(lost.place.path().join("made.json")).unwrap();
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["schema"], "holdfast.recovered-key/v1");
    assert_eq!((&made["fingerprint"], &made["target"]), (&json!(key().fingerprint()), &json!("off1")));
    assert_eq!(made["fingerprint"], made["backend"]["pbs"]["key"]);
    opens(&lost.place, &made);
    assert_eq!(lost.left(), before, "nothing is written");
    lost.place.nothing_of(&lost.paper.words, &[&shown, &text]);

    // The same with a file that came another way, and in words; the hub handed nothing over.
    fs::remove_dir_all(lost.place.path().join("state/restore")).unwrap();
    fs::write(lost.place.path().join("copy.age"), lost.file.to_text()).unwrap();
    let shown = at_terminal(
        lost.place.path(),
        &format!("{LINE} --from copy.age"),
        &[(PASSWORD, "secret"), (WORDS, &good)],
    );
    assert!(shown.contains("(box7, customer acme, made on "), "{shown}");
    let creds = shown.lines().find_map(|line| line.trim().strip_prefix("\"creds\": \"")).unwrap();
    let creds = creds.trim_end_matches('"');
    opens(&lost.place, &json!({ "backend": made["backend"], "creds": creds }));
    lost.place.nothing_of(&lost.paper.words, &[&shown]);
}

/// Two off-site targets with two keys: the document says which of them is to be opened.
#[test]
fn of_two_keys_the_one_that_the_document_names_is_opened() {
    let lost = LostHost::new();
    let mut other = lost.record.clone();
    other.context.code = CodeNumber::try_from(2).unwrap();
    other.fingerprint = other_key().fingerprint().clone();
    let words = RecoveryCode::generate().unwrap();
    let file = Escrow::new(other.context.clone(), other_key()).wrap(&words).unwrap();
    hand_over(&lost.place, &[(5, &other, &file), (4, &lost.record, &lost.file)], None);
    for (name, file) in [("escrow-1.age", &lost.file), ("escrow-2.age", &file)] {
        assert_eq!(
            fs::read_to_string(lost.place.path().join("state/restore").join(name)).unwrap(),
            file.to_text()
        );
    }
    for (key, paper, sheet) in [(key(), &lost.paper, 1), (other_key(), &Paper::of(&words), 2)] {
        lost.document(Some(key.fingerprint().as_str()));
        let shown = at_terminal(lost.place.path(), LINE, &[(PASSWORD, "secret"), (WORDS, &paper.whole())]);
        assert!(shown.contains(&format!("was opened by the code of sheet {sheet} ")), "{shown}");
        assert!(shown.contains(&format!("fingerprint  {}", key.fingerprint())), "{shown}");
    }
}

#[test]
fn a_wrong_file_or_key_is_refused_and_changes_nothing() {
    let lost = LostHost::new();
    // The document is what operators sign for.
    lost.document(None);
    assert!(lost.refused(LINE).contains("names no `key` for off1"));
    lost.document(Some(other_key().fingerprint().as_str()));
    let shown = lost.refused(LINE);
    assert!(
        shown.contains("is said to be key") && !shown.contains(WORDS),
        "before anything is typed: {shown}"
    );
    fs::write(lost.place.path().join("copy.age"), lost.file.to_text()).unwrap();
    let shown = lost.refused(&format!("{LINE} --from copy.age"));
    assert!(shown.contains("it does not open these backups"), "{shown}");
    lost.document(Some(key().fingerprint().as_str()));

    // The hub says one thing, and another is in the file: an older code's, another host's, another key's.
    let code = lost.paper.code();
    let wrapped = |record: &Record, key| Escrow::new(record.context.clone(), key).wrap(&code).unwrap();
    let mut older = lost.record.clone();
    older.context.code = CodeNumber::try_from(7).unwrap();
    let mut other = lost.record.clone();
    other.context.host = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a56".parse().unwrap();
    other.context.host_name = "box8".parse().unwrap();
    for (inside, with, says) in [
        (&older, key(), "this file belongs to sheet 7, made on "),
        (&other, key(), "this file holds the key of box8, made on "),
        (&lost.record, other_key(), "it does not open these backups"),
    ] {
        lost.hand_over(&lost.record, &wrapped(inside, with));
        let shown = lost.refused(LINE);
        assert!(shown.contains(says), "{says}: {shown}");
    }
    lost.hand_over(&lost.record, &lost.file);

    // No password, an invalid login, no person at the terminal, nothing handed over.
    let ended = at_terminal(lost.place.path(), &format!("! {LINE}"), &[(PASSWORD, "")]);
    assert!(ended.contains("no password was typed"), "{ended}");
    let no_one = lost.refused(&LINE.replace("pve@pbs!bk", "a b"));
    assert!(no_one.contains("the user is 1 to 128 of letters"), "{no_one}");
    let away =
        at_terminal(lost.place.path(), &format!("! {LINE}"), &[(PASSWORD, "secret"), (WORDS, "\u{3}")]);
    assert!(away.contains("nothing more was typed"), "{away}");
    let (status, says) = lost.place.without_terminal(&[
        "storage",
        "recover-key",
        "--document",
        lost.place.path().join("document.json").to_str().unwrap(),
        "--target",
        "off1",
        "--user",
        "u",
    ]);
    assert_eq!(status, 74, "{says}");
    fs::remove_dir_all(lost.place.path().join("state/restore")).unwrap();
    assert!(lost.refused(LINE).contains("no wrapped key was handed over here: give the file"));
}

#[test]
fn neither_words_nor_key_are_in_its_memory_once_the_key_is_sealed() {
    let lost = LostHost::new();
    let stuck = Stuck::in_folder(lost.place.path());
    let line = format!("sh -c 'echo $$ > pid; exec {LINE} --output json > stuck'")
        .replace("'pve@pbs!bk'", "pve@pbs!bk");
    let mut looks = Vec::new();
    let shown = typed_by(lost.place.path(), &line, &mut |fresh: &str| {
        let pid = || fs::read_to_string(lost.place.path().join("pid")).unwrap().trim().to_owned();
        if fresh.ends_with(PASSWORD) {
            return Some("secret".to_owned());
        }
        if fresh.ends_with(WORDS) {
            // Once more by hand, with the last word missing: the others are in locked memory while the question is
            // open.
            return Some(lost.paper.words[..10].join(" "));
        }
        if fresh.ends_with("10 of 11, go on: ") {
            looks.push(memory::look(&pid(), &lost.paper.words));
            return Some(lost.paper.words[10].clone());
        }
        fresh.contains("nothing of it is left here.").then(|| {
            looks.push(memory::look(&pid(), &lost.paper.words));
            stuck.empty();
            String::new()
        })
    });
    assert!(shown.contains("sealed to this box"), "{shown}");
    let [typing, after] = looks.try_into().unwrap();
    if let (Some(typing), Some(after)) = (typing, after) {
        assert!(!typing.words.is_empty(), "the look finds what is there");
        assert!(typing.words.iter().all(|mapping| mapping.is_locked), "{typing:?}");
        assert!(after.words.is_empty() && after.key.is_empty(), "{after:?}");
    }
}
