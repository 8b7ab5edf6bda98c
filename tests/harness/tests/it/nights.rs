//! Weeks of backups by policy, in virtual time.
#![forbid(unsafe_code)]

#[test]
fn nights_of_backups() {
    let wrong = harness::nights::run();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
