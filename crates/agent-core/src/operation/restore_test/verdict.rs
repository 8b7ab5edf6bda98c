//! The verdict on a scratch guest's own report.
//!
//! What comes in: its report, and the canaries that the guest reported when it stood still for this very backup. What
//! goes out: one verdict and its reason. *Proved* takes something that was checked and nothing that speaks against it:
//! a stack that is well by its own check, or a canary that is as it was. A guest that was not alone shows nothing about
//! its backup. Pure.

use holdfast_protocol::local::restore_test::{StackHealth, TestReport, TestVerdict};
use holdfast_protocol::local::window::Canary;

/// How long the reason may be: what the wire takes, less a margin.
const WHY_CHARS_MAX: usize = 500;

/// Judges a report. `reported` are the canaries as they were; none when the backup was taken of a running guest.
#[must_use]
pub fn judge(report: &TestReport, reported: &[Canary]) -> (TestVerdict, String) {
    let (verdict, why) = if report.reached.is_empty() {
        let wrong: Vec<String> = unhealthy(report).chain(changed(report, reported)).collect();
        if wrong.is_empty() { checked(report, reported) } else { (TestVerdict::Failed, wrong.join("; ")) }
    } else {
        not_alone(&report.reached)
    };
    (verdict, shortened(&why))
}

fn not_alone(reached: &[u16]) -> (TestVerdict, String) {
    let ports: Vec<String> = reached.iter().map(u16::to_string).collect();
    let why = format!(
        "the scratch guest was not alone: the host let it in on port {}; run `systemctl restart holdfast-test-bridge`, \
         and look what flushed its rules",
        ports.join(", ")
    );
    (TestVerdict::NotRun, why)
}

fn unhealthy(report: &TestReport) -> impl Iterator<Item = String> {
    report.stacks.iter().filter_map(|check| match &check.health {
        StackHealth::Unhealthy { why } => Some(format!("{}: {why}", check.stack)),
        StackHealth::Healthy | StackHealth::Runs => None,
    })
}

fn changed<'a>(report: &'a TestReport, reported: &'a [Canary]) -> impl Iterator<Item = String> + 'a {
    reported.iter().filter_map(|was| {
        let place = was.mount.as_ref().map_or("the root disk", |mount| mount.as_str());
        match report.canaries.iter().find(|is| is.mount == was.mount) {
            None => Some(format!("the canary on {place} is missing")),
            Some(is) if is.sha256 != was.sha256 => {
                Some(format!("the canary on {place} is not the one that was there when the backup was taken"))
            }
            Some(_) => None,
        }
    })
}

fn checked(report: &TestReport, reported: &[Canary]) -> (TestVerdict, String) {
    let well = report.stacks.iter().filter(|check| check.health == StackHealth::Healthy).count();
    let unchecked: Vec<&str> = report
        .stacks
        .iter()
        .filter(|check| check.health == StackHealth::Runs)
        .map(|check| check.stack.as_str())
        .collect();
    if well == 0 && reported.is_empty() {
        let why = "it came up and its controller spoke, but nothing in it can be checked: name a health check for its \
                   stacks in /etc/holdfast/stacks.toml of the guest, or let its backups be taken standing still";
        return (TestVerdict::BootedOnly, why.to_owned());
    }
    let mut why = format!("stacks that are well by their own check: {well}");
    if !unchecked.is_empty() {
        why.push_str(&format!("; that run and have none: {}", unchecked.join(", ")));
    }
    why.push_str(&match reported.len() {
        0 => "; no canary was reported when it was taken".to_owned(),
        count => format!("; canaries as they were: {count}"),
    });
    (TestVerdict::Proved, why)
}

fn shortened(why: &str) -> String {
    if why.chars().count() <= WHY_CHARS_MAX {
        return why.to_owned();
    }
    let kept: String = why.chars().take(WHY_CHARS_MAX - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use TestVerdict::{BootedOnly, Failed, NotRun, Proved};
    use holdfast_protocol::local::restore_test::StackCheck;

    use super::*;

    fn canary(mount: Option<&str>, digit: &str) -> Canary {
        Canary {
            mount: mount.map(|mount| mount.parse().unwrap()),
            sha256: digit.repeat(64).try_into().unwrap(),
        }
    }

    fn report(stacks: &[(&str, StackHealth)], canaries: &[Canary]) -> TestReport {
        let stacks = stacks
            .iter()
            .map(|(name, health)| StackCheck {
                stack: name.parse().unwrap(),
                health: health.clone(),
                took_ms: 5,
            })
            .collect();
        TestReport { guest: None, stacks, canaries: canaries.to_vec(), reached: Vec::new() }
    }

    fn unwell(why: &str) -> StackHealth {
        StackHealth::Unhealthy { why: why.to_owned() }
    }

    #[test]
    fn each_report_has_its_word() {
        use StackHealth::{Healthy, Runs};
        let (root, db, other) =
            (canary(None, "a"), canary(Some("/srv/db"), "b"), canary(Some("/srv/db"), "c"));
        let both = [root.clone(), db.clone()];
        let table = [
            (
                report(&[("shop", Healthy)], &both),
                &both[..],
                Proved,
                "their own check: 1; canaries as they were: 2",
            ),
            (report(&[("shop", Healthy)], &[]), &[], Proved, "no canary was reported"),
            (report(&[("shop", Healthy), ("blog", Runs)], &[]), &[], Proved, "run and have none: blog"),
            (report(&[], &both), &both, Proved, "canaries as they were: 2"),
            (report(&[("shop", Runs)], &both), &both, Proved, "run and have none: shop"),
            // Nothing was checked: what runs may run on nothing.
            (report(&[("shop", Runs)], &both), &[], BootedOnly, "name a health check"),
            (report(&[], &[]), &[], BootedOnly, "name a health check"),
            (report(&[("shop", unwell("no answer"))], &both), &both, Failed, "shop: no answer"),
            (
                report(&[("shop", Healthy)], std::slice::from_ref(&root)),
                &both,
                Failed,
                "the canary on /srv/db is missing",
            ),
            (report(&[("shop", Healthy)], &[root.clone(), other]), &both, Failed, "/srv/db is not the one"),
            (report(&[("shop", Healthy)], &[db]), &[root], Failed, "on the root disk is missing"),
        ];
        for (report, reported, verdict, part) in table {
            let (said, why) = judge(&report, reported);
            assert_eq!(said, verdict, "{why}");
            assert!(why.contains(part), "{why}");
        }
    }

    /// Whatever it says of itself: it may have spoken with the world.
    #[test]
    fn a_guest_that_was_not_alone_shows_nothing() {
        for health in [StackHealth::Healthy, unwell("no")] {
            let found = TestReport { reached: vec![22, 8006], ..report(&[("shop", health)], &[]) };
            let (verdict, why) = judge(&found, &[]);
            assert_eq!(verdict, NotRun);
            assert!(why.contains("port 22, 8006"), "{why}");
        }
    }

    #[test]
    fn a_long_reason_is_cut_where_the_wire_would_refuse_it() {
        let long = report(&[("shop", unwell(&"ü".repeat(400))), ("blog", unwell(&"x".repeat(400)))], &[]);
        let (_, why) = judge(&long, &[]);
        assert_eq!(why.chars().count(), 500);
        assert!(why.ends_with('…'));
    }
}
