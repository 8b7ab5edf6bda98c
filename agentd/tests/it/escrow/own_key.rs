//! Tests of a key made on the host.

use holdfast_protocol::storage::{Backend, Sealed};
use holdfast_recovery::escrow::Expected;
use holdfast_seal::{Creds, SealContext};
use serde_json::{Value, json};

use crate::escrow::place::{Place, key, target_of};
use crate::paper::Paper;
use crate::terminal::{at_terminal, typed_by};

const PROMPT: &str = "Password of pve@pbs!bk at the backup server (not shown): ";

/// What the command writes on this host, by a document that has no key yet.
fn made(place: &Place) -> (Backend, Sealed, String) {
    let document = json!({ "storage": [{ "name": "off1", "backend": { "pbs": { "server": "10.66.0.1",
        "datastore": "store1", "namespace": "hf", "fingerprint": vec!["86"; 32].join(":") } } }] });
    std::fs::write(place.path().join("draft.json"), document.to_string()).unwrap();
    let line = "bin/agentd storage make-key --document draft.json --target off1 --user 'pve@pbs!bk' --output json \
                > made.json";
    let shown = at_terminal(place.path(), line, &[(PROMPT, "secret")]);
    assert!(!shown.contains("secret"), "{shown}");
    let text = std::fs::read_to_string(place.path().join("made.json")).unwrap();
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["schema"], "holdfast.made-key/v1");
    assert_eq!(made["fingerprint"], made["backend"]["pbs"]["key"]);
    let parsed = |name: &str| made[name].clone();
    (
        serde_json::from_value(parsed("backend")).unwrap(),
        serde_json::from_value(parsed("creds")).unwrap(),
        text,
    )
}

#[test]
fn a_key_that_is_made_at_the_box_is_opened_by_its_code_and_known_to_no_one_else() {
    let place = Place::new();
    let (backend, sealed, text) = made(&place);
    let (other, _, _) = made(&place);
    assert_ne!(backend, other, "each is another key");
    let host_key = place.host_key();
    let name = "off1".parse().unwrap();
    let creds = Creds::open(&sealed, &host_key, SealContext { target: &name, backend: &backend }).unwrap();
    let own = creds.key().unwrap().clone();
    assert_eq!((creds.user(), creds.password().expose()), ("pve@pbs!bk", "secret"));
    assert_ne!(own.fingerprint(), key().fingerprint());
    let json: Value = serde_json::from_str(own.to_json().unwrap().expose()).unwrap();
    assert!(!text.contains(json["data"].as_str().unwrap()));

    // Signed for, it gets a code as any other key does.
    let place = place.signed_anew(&target_of(&backend, &sealed));
    let mut paper = Paper::new(0);
    let shown = typed_by(place.path(), "bin/agentd escrow create", &mut |fresh: &str| paper.answer(fresh));
    assert!(shown.contains("opens the off-site backups at off1 from now on"), "{shown}");
    let code = place.codes().codes.pop().unwrap();
    assert_eq!(code.key(), own.fingerprint());
    let opened = place.file(code.number()).open(&paper.code(), Expected::Exactly(&code.record)).unwrap();
    assert_eq!(opened.key().to_json().unwrap().expose(), own.to_json().unwrap().expose());
}

#[test]
fn without_a_backup_server_in_the_document_no_key_is_made() {
    let place = Place::new();
    let share = json!({ "storage": [{ "name": "off1", "backend": { "nfs": { "server": "10.66.0.1", "export": "/b" } } }] });
    for (document, says) in [
        (share, "names no backup server off1"),
        (json!({ "storage": [] }), "names no backup server off1"),
        (
            json!({ "storage": [{ "name": "off1", "backend": { "pbs": { "server": "x" } } }] }),
            "names no backup server",
        ),
    ] {
        std::fs::write(place.path().join("draft.json"), document.to_string()).unwrap();
        let line = "! bin/agentd storage make-key --document draft.json --target off1 --user u";
        let mut typed = |fresh: &str| fresh.contains("(not shown): ").then(|| "secret".to_owned());
        let shown = typed_by(place.path(), line, &mut typed);
        assert!(shown.contains(says), "{shown}");
        assert!(!shown.contains("\"creds\""), "{shown}");
    }
    let draft = place.path().join("draft.json");
    let (code, says) = place.without_terminal(&[
        "storage",
        "make-key",
        "--document",
        draft.to_str().unwrap(),
        "--target",
        "off1",
        "--user",
        "u",
    ]);
    assert_eq!(code, 74, "{says}");
    assert!(says.contains("typed at a terminal, and there is none"), "{says}");
}
