//! Tests of every recorded refusal of Proxmox VE 9.2.11.
//!
//! `tests/data/pve-errors.jsonl` has one exchange on each line, with the place where it was recorded; `class` was added
//! by hand. A line whose class changes is a change of the contract with callers.

use serde::Deserialize;
use serde_json::Value as Json;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    origin: String,
    call: String,
    status: u16,
    reason: String,
    body: Json,
    class: String,
}

fn recorded() -> Vec<Recorded> {
    let lines = include_str!("../../tests/data/pve-errors.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The class and the parts of it that callers use.
fn class_of(error: &PveError) -> String {
    let joined = |list: &[String]| list.join("|");
    match error {
        PveError::Unauthorised { .. } => "Unauthorised".to_owned(),
        PveError::Permission { path, privileges, .. } => match path {
            Some(path) => format!("Permission {path} {}", joined(privileges)),
            None => "Permission".to_owned(),
        },
        PveError::Parameters { errors, .. } => {
            format!("Parameters {}", joined(&errors.keys().cloned().collect::<Vec<_>>()))
        }
        PveError::Gone { vmid } => format!("Gone {vmid}"),
        PveError::Locked { kind } => format!("Locked {kind}"),
        PveError::LockTimeout { .. } => "LockTimeout".to_owned(),
        PveError::AlreadyExists { vmid } => format!("AlreadyExists {vmid}"),
        PveError::NotRunning { vmid } => format!("NotRunning {vmid}"),
        PveError::AlreadyRunning { vmid } => format!("AlreadyRunning {vmid}"),
        PveError::Protected { vmid } => format!("Protected {vmid}"),
        PveError::DigestChanged => "DigestChanged".to_owned(),
        PveError::StorageOffline { storage, .. } => {
            format!("StorageOffline {}", storage.as_deref().unwrap_or("?"))
        }
        PveError::StorageUnknown { storage } => format!("StorageUnknown {storage}"),
        PveError::NodeUnknown { node } => format!("NodeUnknown {node}"),
        PveError::VolumeGone { volume } => format!("VolumeGone {volume}"),
        PveError::NoSuchTask => "NoSuchTask".to_owned(),
        PveError::GatewayTimeout { status, .. } => format!("GatewayTimeout {status}"),
        PveError::NotReady { .. } => "NotReady".to_owned(),
        PveError::Unsupported { .. } => "Unsupported".to_owned(),
        PveError::Other { status, .. } => format!("Other {status}"),
        transport => panic!("a recorded answer became {transport:?}"),
    }
}

/// The VMID that the caller knows from the path.
fn vmid_of(call: &str) -> Option<Vmid> {
    let (_, rest) = call.split_once("/lxc/")?;
    rest.split('/').next()?.parse().ok()
}

fn storage_of(call: &str) -> Option<&str> {
    let (_, rest) = call.split_once("/storage/")?;
    rest.split('/').next()
}

fn classified(line: &Recorded) -> PveError {
    let body = match &line.body {
        Json::String(text) => text.clone().into_bytes(),
        json => serde_json::to_vec(json).unwrap(),
    };
    classify(&Refusal {
        call: "recorded",
        role: Role::Operate,
        vmid: vmid_of(&line.call),
        storage: storage_of(&line.call),
        status: line.status,
        reason: &line.reason,
        body: &body,
    })
}

#[test]
fn recorded_refusals_have_their_class() {
    let mut wrong = Vec::new();
    for line in recorded() {
        let class = class_of(&classified(&line));
        if class != line.class {
            wrong.push(format!(
                "{} {} ({}): {class}, not {}",
                line.status, line.reason, line.origin, line.class
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_sentence_is_one_line_and_none_lost_its_text() {
    for line in recorded() {
        let error = classified(&line);
        let text = error.to_string();
        assert!(!text.contains('\n') && text.len() > 10, "{text:?}");
        if let PveError::Other { .. } = error {
            assert!(text.contains(line.reason.trim_end()), "{text}");
        }
    }
}

/// The last lines of the genuine client, as recorded of it alone (a server that is down, a wrong secret, another certificate),
/// after the text that Proxmox puts before them.
#[test]
fn a_look_into_an_archive_waits_for_a_server_that_is_away() {
    let class = |reason: &str| {
        class_of(&classify(&Refusal {
            call: "look into an archive",
            role: Role::Allocate,
            vmid: None,
            storage: None,
            status: 500,
            reason,
            body: b"",
        }))
    };
    for last in [
        "    error connecting to https://10.66.0.1:8007/ - tcp connect error",
        "Error: authentication failed",
        "    1: error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:../ssl/statem/statem_clnt.c:2124:",
    ] {
        assert_eq!(class(&format!("proxmox-backup-client failed: {last}")), "StorageOffline ?", "{last}");
        let restored = format!("unable to restore CT 300 - proxmox-backup-client failed: {last}");
        assert_eq!(class(&restored), "StorageOffline ?", "{last}");
    }
    let unsaid =
        "proxmox-backup-client failed: Error: while reading snapshot 'BackupDir' - error connecting to it";
    assert_eq!(class(unsaid), "Other 500");
}

#[test]
fn an_answer_without_a_reason_phrase_still_has_its_message() {
    let error = classify(&Refusal {
        call: "recorded",
        role: Role::Operate,
        vmid: None,
        storage: None,
        status: 500,
        reason: "",
        body: br#"{"message":"CT is locked (backup)\n","data":null}"#,
    });
    assert_eq!(class_of(&error), "Locked backup");
}
