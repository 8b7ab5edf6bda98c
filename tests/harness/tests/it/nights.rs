//! Weeks of backups by policy, in virtual time.
#![forbid(unsafe_code)]

#[test]
fn nights_of_backups() {
    let wrong = harness::backup_weeks::run();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
