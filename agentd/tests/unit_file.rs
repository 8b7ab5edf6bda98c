//! The shipped unit against what the program and the design say of it.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::PathBuf;

fn unit() -> (PathBuf, String) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../systemd/agentd.service"));
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Every value of a key, in order.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.split_once('=')).filter(|(k, _)| *k == key).map(|(_, v)| v).collect()
}

#[test]
fn it_is_nobody_and_can_become_nobody_else() {
    let (_, text) = unit();
    assert_eq!(values(&text, "User"), ["holdfast"]);
    assert_eq!(values(&text, "CapabilityBoundingSet"), [""]);
    assert_eq!(values(&text, "AmbientCapabilities"), [""]);
    assert_eq!(values(&text, "NoNewPrivileges"), ["yes"]);
    assert_eq!(values(&text, "LimitCORE"), ["0"]);
    assert_eq!(values(&text, "UMask"), ["0077"]);
    assert!(!text.contains("sudo") && !text.contains("ReadWritePaths"), "one folder to write in");
}

#[test]
fn what_does_not_mend_itself_is_not_tried_again() {
    let (_, text) = unit();
    let prevented: Vec<u8> = values(&text, "RestartPreventExitStatus")
        .concat()
        .split(' ')
        .map(|code| code.parse().unwrap())
        .collect();
    assert_eq!(
        prevented,
        [
            agentd::cli::run::RunCommandError::from(agentd::port::privilege::PrivilegeError::Root)
                .exit_code(),
            agentd::run::RunError::NotEnrolled.exit_code(),
        ]
    );
    assert_eq!(values(&text, "Restart"), ["always"]);
    assert_eq!(values(&text, "Type"), ["notify"]);
}

/// The bound of the design is 1.5; systemd counts in tenths.
#[test]
#[expect(clippy::disallowed_methods, reason = "systemd-analyze judges the unit")]
fn systemd_finds_it_as_closed_as_the_design_asks() {
    let (path, _) = unit();
    let judged = std::process::Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=15", "--no-pager"])
        .arg(&path)
        .output();
    match judged {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        // The only lawful reason not to ask: a machine without systemd's tools.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => panic!("{error}"),
    }
}
