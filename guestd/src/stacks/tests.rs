//! Tests of the file format and of its errors.

use std::path::Path;

use super::file::parse;
use super::*;

fn read(text: &str) -> Result<Stacks, String> {
    parse(text, Path::new("/etc/holdfast/stacks.toml"))
        .map_err(|error| holdfast_protocol::json::chain(&error))
}

const WHOLE: &str = r#"
bound_max_s = 600

[apt]
snapshot = "try"
keep_hours = 48

[stack.web]
driver = "compose"
directory = "/srv/web"
file = "compose.prod.yml"
project = "web"
after = ["db", "queue"]
wanted = "stopped"
on_failure = "restart"
restore_test = "leave"
stop_timeout_s = 30
start_timeout_s = 60
health_timeout_s = 90

[stack.web.hooks]
pre_quiesce = ["/usr/local/bin/drain", "--now"]
post_resume = ["/usr/local/bin/open"]
health = ["/usr/bin/curl", "-fsS", "http://127.0.0.1/"]
timeout_s = 15

[stack.web.volumes]
data = { class = "hot", volume = "db" }
media = { class = "bulk" }

[stack.db]
driver = "systemd"
units = ["postgresql@17-main.service"]

[stack.queue]
driver = "systemd"
units = ["queue.socket", "queue.service"]
after = ["db"]
"#;

#[test]
fn a_whole_file_is_read_in_the_order_of_starting() {
    let stacks = read(WHOLE).unwrap();
    let names: Vec<&str> = stacks.stacks.iter().map(|stack| stack.name.as_str()).collect();
    assert_eq!(names, ["db", "queue", "web"]);
    let web = &stacks.stacks[2];
    assert_eq!(web.limits.hook, Duration::from_secs(15));
    assert_eq!((web.wanted, web.restore_test), (DefaultState::Stopped, RestoreTest::Leave));
    assert_eq!((web.on_failure, stacks.stacks[0].on_failure), (OnFailure::Restart, OnFailure::Report));
    assert_eq!(web.volumes["media"], VolumeRef { class: Class::Bulk, volume: None });
    assert_eq!((stacks.apt.snapshot, stacks.apt.keep_hours), (AptSnapshot::Try, 48));
    assert_eq!(stacks.bound_max, Some(Duration::from_secs(600)));
    assert_eq!(read("").unwrap(), Stacks::default());
}

#[test]
fn the_shipped_example_is_a_file_of_this_form() {
    let text = include_str!("../../../packaging/guest/stacks.toml");
    let stacks = read(text).unwrap();
    assert!(stacks.is_empty(), "as it is shipped, it changes nothing");
    // An operator who uncomments the lines gets what they show.
    let open: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(read(&open).unwrap().stacks.len(), 2, "{open}");
}

#[test]
fn a_mistake_is_named_by_file_key_and_rule() {
    let cases = [
        ("nonsense", "stacks.toml is refused at `.`"),
        ("colour = 1", "unknown field `colour`"),
        ("[stack.Web]\ndriver=\"systemd\"", "is not a StackName"),
        ("[stack.a]\ndriver = \"podman\"", "at `stack.a.driver`"),
        ("[stack.a]\ndriver = \"systemd\"", "at `stack.a.units`: 1 to 32 units"),
        ("[stack.a]\ndriver = \"systemd\"\nunits = [\"a\"]", "without globs"),
        ("[stack.a]\ndriver = \"systemd\"\nunits = [\"*.service\"]", "without globs"),
        ("[stack.a]\ndriver = \"systemd\"\nunits = [\"-Hx.service\"]", "without globs"),
        ("[stack.a]\ndriver = \"systemd\"\nunits = [\"a.service\"]\ndirectory = \"/a\"", "not directory"),
        ("[stack.a]\ndriver = \"compose\"", "at `stack.a.directory`"),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"srv\"", "absolute path"),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nproject = \"-p\"", "at `stack.a.project`"),
        (
            "[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nunits = [\"x.service\"]",
            "at `stack.a.units`",
        ),
        (
            "[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nstop_timeout_s = 0",
            "stop_timeout_s`: 1 to 3600",
        ),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nhooks.health = [\"curl\"]", "absolute path"),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nhooks.health = []", "no shell reads this"),
        (
            "[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nvolumes.X = { class = \"hot\" }",
            "`stack.a.volumes.X`",
        ),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nafter = [\"b\"]", "there is no stack `b`"),
        ("[stack.a]\ndriver = \"compose\"\ndirectory = \"/a\"\nafter = [\"a\"]", "dependency is circular"),
        ("bound_max_s = 10", "`bound_max_s`: 30 to 7200"),
        ("[apt]\nkeep_hours = 0", "`apt.keep_hours`"),
        ("[apt]\nsnapshot = \"yes\"", "at `apt.snapshot`"),
        ("[upgrades]\nsecurity = \"perhaps\"", "at `upgrades.security`"),
        ("[apt]\nafter = \"perhaps\"", "at `apt.after`"),
        ("[apt]\nafter = \"roll_back\"", "no snapshot to go back to"),
    ];
    for (text, words) in cases {
        let error = read(text).unwrap_err();
        assert!(error.contains(words), "{text}\n  says: {error}\n  wants: {words}");
        assert!(error.contains("/etc/holdfast/stacks.toml"), "{error}");
    }
}

#[test]
fn snapshots_imply_reports_but_no_rollback() {
    let after = |text: &str| read(&format!("[apt]\n{text}\n")).unwrap().apt.after;
    assert_eq!(after(""), AptAfter::Off);
    assert_eq!(after("snapshot = \"try\""), AptAfter::Report);
    assert_eq!(after("snapshot = \"must\""), AptAfter::Report);
    assert_eq!(after("snapshot = \"try\"\nafter = \"off\""), AptAfter::Off);
    assert_eq!(after("after = \"report\""), AptAfter::Report);
    assert_eq!(after("snapshot = \"try\"\nafter = \"roll_back\""), AptAfter::RollBack);
}

/// Unattended upgrades are made and rolled back, unless the file says otherwise.
#[test]
fn security_upgrades_are_on_and_go_back_until_the_file_says_otherwise() {
    let upgrades = |text: &str| read(text).unwrap().upgrades;
    let usual = upgrades("");
    assert_eq!((usual.security, usual.apt.snapshot), (Security::On, AptSnapshot::Try));
    assert_eq!((usual.apt.after, usual.apt.keep_hours), (AptAfter::RollBack, 168));
    assert_eq!(usual, Upgrades::default(), "as without a file");
    assert_eq!(upgrades("[upgrades]\nsecurity = \"off\"").security, Security::Off);
    let tell = upgrades("[apt]\nsnapshot = \"must\"\nafter = \"report\"\nkeep_hours = 5").apt;
    assert_eq!((tell.snapshot, tell.after, tell.keep_hours), (AptSnapshot::Must, AptAfter::Report, 5));
    assert_eq!(upgrades("[apt]\nsnapshot = \"off\"").apt.after, AptAfter::Report);
    let apt = read("[apt]\nsnapshot = \"try\"").unwrap();
    assert_eq!((apt.apt.after, apt.upgrades.apt.after), (AptAfter::Report, AptAfter::RollBack));
}
