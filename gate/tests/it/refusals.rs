//! Tests of releases that are not taken.

use super::host::{Host, Recipe, shown};
use super::is_root;

const BAD_DATA: i32 = 65;
const NOT_ALLOWED: i32 = 77;

#[test]
fn what_is_not_signed_whole_new_and_in_time_is_not_taken() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    let good = Recipe::default;
    let cases: &[(&str, Recipe<'_>, i32, &str)] = &[
        ("another's key", Recipe { signers: &["mallory"], ..good() }, NOT_ALLOWED, "KEY_UNKNOWN"),
        ("one of two", Recipe { signers: &["alice", "mallory"], ..good() }, NOT_ALLOWED, "KEY_UNKNOWN"),
        ("signed as a job", Recipe { namespace: "holdfast-job", ..good() }, NOT_ALLOWED, "SIGNATURE"),
        ("expired", Recipe { expires_at: "2026-01-02T00:00:00Z", ..good() }, NOT_ALLOWED, "EXPIRED"),
        ("as old as the package", Recipe { version: env!("CARGO_PKG_VERSION"), ..good() }, 1, "NOT_NEWER"),
        ("older", Recipe { version: "0.0.9", ..good() }, 1, "NOT_NEWER"),
        ("no version", Recipe { version: "7.0.0-rc1", ..good() }, BAD_DATA, ""),
    ];
    for (what, recipe, exit, code) in cases {
        let release = host.release(what, recipe);
        host.refuses(&["install", shown(&release.signed), shown(&release.program)], *exit);
        host.offers(&release);
        assert_eq!(host.starts(), "package", "{what}");
        let status = host.status();
        if !code.is_empty() {
            assert_eq!(status["refused"]["code"], *code, "{what}: {status}");
        }
        assert_eq!((&status["a"], status.get("trial")), (&"empty".into(), None), "{what}");
    }
}

#[test]
fn another_program_than_the_signed_one_is_not_taken() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    let release = host.release("seven", &Recipe::default());
    let words = ["install", shown(&release.signed), shown(&release.program)];
    for (program, code) in
        [("program seve", "TRUNCATED"), ("program seveN", "DIGEST"), ("program seven!", "TRUNCATED")]
    {
        std::fs::write(&release.program, program).unwrap();
        host.refuses(&words, BAD_DATA);
        host.offers(&release);
        assert_eq!(host.starts(), "package");
        assert_eq!(host.status()["refused"]["code"], code, "{program}");
    }
    std::fs::write(&release.signed, "{").unwrap();
    host.refuses(&words, BAD_DATA);
    std::fs::remove_file(&release.signed).unwrap();
    host.refuses(&words, 66);
}

#[test]
fn a_build_that_failed_is_taken_again_only_when_it_is_signed_anew() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    let release = host.release("seven", &Recipe::default());
    host.installs(&release);
    host.does(&["end"]);
    // The build before must have been watched first.
    let said = host.refuses(&["install", shown(&release.signed), shown(&release.program)], 1);
    assert!(said.contains("still being watched"), "{said}");
    let mut state = host.status();
    state["returning"] = "no".into();
    std::fs::write(host.path("slots/state.json"), state.to_string()).unwrap();
    let said = host.refuses(&["install", shown(&release.signed), shown(&release.program)], 1);
    assert!(said.contains("until a new manifest of it is signed"), "{said}");
    let again = host.release("again", &Recipe { issued_at: "2026-02-01T00:00:00Z", ..Recipe::default() });
    host.installs(&again);
    assert_eq!(host.starts(), "a");
}

#[test]
fn settings_that_others_could_have_written_are_not_used() {
    if !is_root() {
        return;
    }
    let host = Host::new();
    host.set(2);
    let release = host.release("seven", &Recipe::default());
    let said = host.refuses(&["install", shown(&release.signed), shown(&release.program)], 78);
    assert!(said.contains("would need 2 signatures"), "{said}");
    host.set(1);
    let mode = |name, bits| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(host.path(name), std::fs::Permissions::from_mode(bits)).unwrap();
    };
    for (name, open, closed) in [("etc", 0o777, 0o755), ("etc/agent-gate.toml", 0o666, 0o644)] {
        mode(name, open);
        assert!(host.refuses(&["start"], 78).contains("can be changed by others than root"), "{name}");
        mode(name, closed);
    }
    mode("etc/release-keys", 0o666);
    let said = host.refuses(&["install", shown(&release.signed), shown(&release.program)], 78);
    assert!(said.contains("can be changed by others than root"), "{said}");
    mode("etc/release-keys", 0o644);
    std::fs::write(host.path("etc/agent-gate.toml"), "health_window_s = 1\n").unwrap();
    assert!(host.refuses(&["start"], 78).contains("health window"));
    std::fs::write(host.path("etc/agent-gate.toml"), "unknown = 1\n").unwrap();
    host.refuses(&["start"], 78);
}
