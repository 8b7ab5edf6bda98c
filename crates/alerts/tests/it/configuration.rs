//! Rules as they are written: defaults, closed fields, faults with their paths.

use alerts::Rules;
use alerts::label::{Labelled, Labels, Matcher};
use holdfast_protocol::condition::{ConditionCode, Severity, Subject};

use crate::kit::*;

#[test]
fn without_a_file_everything_has_a_value_and_each_channel_hears() {
    let rules = toml::from_str::<Rules>("").unwrap();
    assert_eq!(rules, Rules::default());
    let rules = rules.resolve(&[receiver("mail"), receiver("chat")]).unwrap();
    let labels = Labels::default();
    let labelled = |severity| Labelled {
        code: ConditionCode::GuestBroken,
        severity,
        subject: &Subject::Host {},
        labels: &labels,
        host: None,
    };
    assert_eq!(rules.routes(&labelled(Severity::Warning))[0].receivers.len(), 2);
    assert!(rules.routes(&labelled(Severity::Info)).is_empty());
    let none = Rules::default().resolve(&[]).unwrap();
    assert!(none.routes(&labelled(Severity::Critical)).is_empty(), "without a channel nothing is sent");
}

#[test]
fn rules_are_written_as_they_were_read() {
    let toml = toml::to_string(&Rules::default()).unwrap();
    assert_eq!(toml::from_str::<Rules>(&toml).unwrap(), Rules::default());
}

#[test]
fn each_fault_has_its_path() {
    for (toml, says) in [
        ("group_interval_s = 1", "group_interval_s: 1 is out of range: 10 to 86400 are possible"),
        (
            "flap = { fire_reports = 4, of_reports = 3 }",
            "flap.fire_reports: 4 is out of range: 1 to 3 are possible",
        ),
        (
            "[[route]]\nname = \"a\"\nreceivers = [\"pager\"]",
            "route[0].receivers: no channel is called pager: add it to the settings, or correct the name",
        ),
        (
            "[[route]]\nname = \"default\"\nreceivers = []",
            "route[0].name: the name default is taken by `default_route`",
        ),
        (
            "[[route]]\nname = \"a\"\nreceivers = []\n[[route]]\nname = \"a\"\nreceivers = []",
            "route[1]: a is there twice",
        ),
        (
            "default_route.escalate = { after_s = 60, receivers = [\"mail\"] }",
            "default_route.escalate.receivers: mail hears of it before the escalation: name another receiver, or use \
             `repeat_interval_s`",
        ),
        ("grace = [{ matchers = [] }]", "grace[0].matchers: it is empty, and would do nothing"),
        (
            "[[quiet_hours]]\nname = \"x\"\nfrom = \"07:00\"\nuntil = \"07:00\"\nzone = \"UTC\"",
            "quiet_hours[0].until: `from` and `until` are the same time",
        ),
        (
            "inhibit = [{ source = \"GUEST_CRASHED\", targets = [\"PROXMOX_AWAY\"] }]",
            "inhibit[0]: GUEST_CRASHED is muted by itself, or by one of its targets: neither would ever be sent",
        ),
        (
            "[[receiver]]\nname = \"x\"",
            "receiver[0].name: no channel is called x: add it to the settings, or correct the name",
        ),
    ] {
        let rules = toml::from_str::<Rules>(toml).unwrap();
        let faults = rules.resolve(&["mail", "chat"].map(receiver)).unwrap_err();
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [says], "{toml}");
    }
}

#[test]
fn unknown_fields_and_values_are_refused_when_they_are_read() {
    for (toml, says) in [
        ("group_wait = 3", "unknown field `group_wait`"),
        ("group_by = [\"planet\"]", "unknown variant `planet`"),
        ("grace = [{ matchers = [\"guest=~web.*\"] }]", "is a regular expression, which is not supported"),
        (
            "grace = [{ matchers = [\"code=CRASHED\"] }]",
            "\"CRASHED\" is never the code of an incident: it is one of AGENT_",
        ),
        ("grace = [{ matchers = [\"severity=high\"] }]", "it is one of info, warning, critical"),
        ("grace = [{ matchers = [\"cause=disk\"] }]", "it is one of clock, delivery, "),
        ("grace = [{ matchers = [\"kind=vm\"] }]", "it is one of certificate, disk, guest, "),
        ("grace = [{ matchers = [\"subject=vm:3\"] }]", "it is host, hub, or KIND:ID with one of the kinds "),
        ("grace = [{ matchers = [\"planet=x\"] }]", "\"planet\" is no label"),
        ("grace = [{ matchers = [\"host\"] }]", "compares nothing"),
        ("[[quiet_hours]]\nname = \"x\"\nfrom = \"7\"", "is no time of the day"),
        ("[[quiet_hours]]\nname = \"X\"", "is no name of a rule"),
        ("default_route.receivers = [\"A B\"]", "is not a ReceiverName"),
    ] {
        let error = toml::from_str::<Rules>(toml).unwrap_err().to_string();
        assert!(error.contains(says), "{toml}: {error}");
    }
}

#[test]
fn a_label_that_is_missing_is_empty() {
    let labels = Labels { customer: Some("acme".parse().unwrap()), ..Labels::default() };
    let host = "pve1".parse().unwrap();
    let labelled = Labelled {
        code: ConditionCode::GuestBroken,
        severity: Severity::Critical,
        subject: &Subject::Guest { uid: uid(1) },
        labels: &labels,
        host: Some(&host),
    };
    for (matcher, matches) in [
        ("customer=acme", true),
        ("customer=\"acme\"", true),
        ("customer!=acme", false),
        ("policy=", true),
        ("policy!=gold", true),
        ("policy=gold", false),
        ("host=pve1", true),
        ("code=GUEST_BROKEN", true),
        ("severity!=critical", false),
        ("cause=guest", true),
        ("kind=guest", true),
        ("guest=00000000-0000-0000-0000-000000000001", true),
    ] {
        assert_eq!(matcher.parse::<Matcher>().unwrap().matches(&labelled), matches, "{matcher}");
    }
}
