//! Checks of the host itself: clock, service, identity, secrets, pins.
//!
//! Input: the settings, files and links that any user may read, and the running agent's status. Output: [`Check`]s with
//! the command that fixes the fault. Each check is a pure function, with a separate function that reads its input.

use std::path::Path;

use holdfast_protocol::enrol::CERTIFICATE_LATE;
use holdfast_protocol::json::chain;
use holdfast_protocol::pin::PinSet;
use holdfast_protocol::report::{HardwareSection, UpdatesSection};
use jiff::{SignedDuration, Timestamp};

use super::row::{Check, State};
use super::tunnels;
use crate::model::clock_trust::Synchrony;
use crate::model::token_age::TokenAge;
use crate::port::admin_socket::AgentStatus;
use crate::port::hub::Contact;
use crate::port::pve::Role;
use crate::port::{admin_socket, ntp};
use crate::settings::Settings;

/// Disks and packages are read once an hour.
const DISKS_AGE_MAX: SignedDuration = SignedDuration::from_hours(3);
const UNITS: &str = "/usr/lib/systemd/system";
const WANTED: &str = "/etc/systemd/system";

/// All of them.
pub async fn checks(settings: &Settings, now: Timestamp) -> Vec<Check> {
    let mut checks = vec![clock(ntp::ask().await), pins(&settings.proxmox.pins)];
    let (files, ages) = (settings.token_files(), settings.token_ages());
    checks.extend(files.into_iter().map(|(role, file)| secret_on_disk(role, file, &ages, now)));
    checks.extend(units(Path::new(UNITS), Path::new(WANTED)));
    match admin_socket::ask(&settings.state.dir) {
        Ok(seen) => {
            checks.extend(status(&seen.contact, now));
            checks.push(sees_proxmox(&seen, now));
            checks.extend(seen.sections.hardware.as_ref().map(|hardware| disks(hardware, now)));
            checks.extend(seen.sections.updates.as_ref().map(|updates| packages(updates, now)));
            checks.extend(tunnels::checks(&settings.tunnel, seen.sections.agent.as_ref(), Path::new(WANTED)));
        }
        Err(error) => {
            let mend = vec!["systemctl start agentd".to_owned()];
            checks.push(Check { mend, ..Check::new(State::Unknown, "hub and certificate", chain(&error)) });
        }
    }
    checks
}

fn clock(kept: Synchrony) -> Check {
    match kept {
        Synchrony::Kept => Check::new(State::Good, "clock", "a time service keeps it"),
        Synchrony::Unkept => Check {
            mend: vec!["apt-get install chrony".to_owned(), "systemctl enable --now chrony".to_owned()],
            ..Check::new(State::Failed, "clock", "no time service keeps it: signed jobs with times wait")
        },
    }
}

/// Proxmox renews its certificate and keeps its key.
fn pins(pins: &PinSet) -> Check {
    if pins.iter().all(|pin| pin.to_string().starts_with("spki/")) {
        return Check::new(State::Good, "pins of Proxmox", "of its key: they outlive a renewed certificate");
    }
    Check::new(
        State::Failed,
        "pins of Proxmox",
        "one is of a whole certificate and breaks when Proxmox renews it: give `agentd setup` --pin spki/sha256:…, or no --pin",
    )
}

fn secret_on_disk(role: Role, file: &Path, ages: &[TokenAge], now: Timestamp) -> Check {
    match ages.iter().find(|age| age.role == role.text()) {
        Some(age) => secret(age, now),
        None => {
            let why = std::fs::metadata(file)
                .err()
                .map_or_else(|| "its age makes no sense".to_owned(), |e| e.to_string());
            Check::new(State::Failed, secret_name(role.text()), format!("{}: {why}", file.display()))
        }
    }
}

fn secret_name(role: &str) -> String {
    format!("age of token {role}")
}

fn secret(age: &TokenAge, now: Timestamp) -> Check {
    let said = format!("{} days old, renewed every {} days", age.days(now), age.renewed_after_days);
    if age.late_since(now).is_none() {
        return Check::new(State::Good, secret_name(&age.role), said);
    }
    let mend = ["journalctl -u holdfast-proxmox-tokens -n 30", "systemctl start holdfast-proxmox-tokens"];
    let detail = format!("{said}: it is late, and its log says why");
    Check {
        mend: mend.map(str::to_owned).to_vec(),
        ..Check::new(State::Failed, secret_name(&age.role), detail)
    }
}

/// The units of the package, where it is installed: whether they start again after a reboot.
fn units(units: &Path, wanted: &Path) -> Vec<Check> {
    let ours = [
        ("agentd.service", "multi-user.target"),
        ("holdfast-golden-publish.socket", "sockets.target"),
        ("holdfast-golden.socket", "sockets.target"),
        ("holdfast-hardware.timer", "timers.target"),
        ("holdfast-helper.socket", "sockets.target"),
        ("holdfast-proxmox-tokens.timer", "timers.target"),
        ("holdfast-updates.timer", "timers.target"),
    ];
    let installed = ours.iter().filter(|(name, _)| units.join(name).exists());
    installed
        .map(|(name, target)| {
            let link = wanted.join(format!("{target}.wants")).join(name);
            if link.symlink_metadata().is_ok() {
                return Check::new(State::Good, format!("unit {name}"), "starts with the box");
            }
            let mend = vec![format!("systemctl enable --now {name}")];
            Check { mend, ..Check::new(State::Failed, format!("unit {name}"), "does not start with the box") }
        })
        .collect()
}

/// The view of the running agent, with the settings that it read at its start: the checks above read tokens, pins and
/// settings anew.
fn sees_proxmox(status: &AgentStatus, now: Timestamp) -> Check {
    const NAME: &str = "Proxmox, as the running agent sees it";
    let agent = status.sections.agent.as_ref();
    let problem = agent.and_then(|agent| agent.problems.first()).map(|problem| format!(": {problem}"));
    match (status.seen_at, agent.and_then(|agent| agent.unobserved_since)) {
        (Some(at), None) => {
            let age = now.duration_since(at).as_secs().max(0);
            Check::new(State::Good, NAME, format!("seen whole {age} s ago"))
        }
        (None, None) => Check::new(State::Unknown, NAME, "it has not looked since it started"),
        (_, Some(since)) => Check {
            mend: vec!["systemctl restart agentd".to_owned()],
            ..Check::new(
                State::Failed,
                NAME,
                format!(
                    "not seen since {since:.0}{}; where all rows above are well, it goes on with what it read at its start",
                    problem.unwrap_or_default()
                ),
            )
        },
    }
}

/// Whether root's service reads the disks. Without smartmontools it does not, and nothing else is wrong.
fn disks(hardware: &HardwareSection, now: Timestamp) -> Check {
    let Some(at) = hardware.disks_read_at else {
        return Check {
            mend: vec![
                "apt-get install smartmontools".to_owned(),
                "systemctl start holdfast-hardware.service".to_owned(),
            ],
            ..Check::new(
                State::Notice,
                "disks",
                "not read: a disk that fails is not noticed before it is gone",
            )
        };
    };
    let age = now.duration_since(at);
    let said = format!("{} read {} min ago", hardware.disks.len(), age.as_mins().max(0));
    if age <= DISKS_AGE_MAX {
        return Check::new(State::Good, "disks", said);
    }
    let mend = vec!["systemctl restart holdfast-hardware.timer".to_owned()];
    Check { mend, ..Check::new(State::Failed, "disks", format!("{said}; they are read once an hour")) }
}

/// Whether root's service reads the packages, and apt can say what waits.
fn packages(updates: &UpdatesSection, now: Timestamp) -> Check {
    let age = now.duration_since(updates.read_at);
    let said = format!("read {} min ago", age.as_mins().max(0));
    if age > DISKS_AGE_MAX {
        let mend = vec!["systemctl restart holdfast-updates.timer".to_owned()];
        return Check {
            mend,
            ..Check::new(State::Failed, "packages", format!("{said}; they are read once an hour"))
        };
    }
    match (&updates.pending, &updates.failure) {
        (Some(pending), _) => {
            let (total, security) = (pending.total(), pending.security);
            Check::new(
                State::Good,
                "packages",
                format!("{said}: {total} upgrades wait, {security} of them for security"),
            )
        }
        (None, failure) => {
            let why = failure.as_ref().map_or("it does not say why", |why| why.as_str());
            let mend = vec!["apt-get update".to_owned()];
            Check {
                mend,
                ..Check::new(State::Notice, "packages", format!("apt cannot say what waits: {why}"))
            }
        }
    }
}

fn status(contact: &Contact, now: Timestamp) -> [Check; 2] {
    let hub = match (&contact.problem, contact.reached_at) {
        (Some(problem), _) => Check::new(State::Failed, "hub", problem.to_string()),
        (None, Some(at)) => Check::new(State::Good, "hub", format!("it answered at {at:.0}")),
        (None, None) => Check::new(State::Unknown, "hub", "it has not answered since the agent started"),
    };
    let (ends, left) = (contact.certificate_ends_at, contact.certificate_ends_at.duration_since(now));
    let said = format!("good for {}, until {ends:.0}", life_left(left));
    let certificate = if left >= CERTIFICATE_LATE {
        Check::new(State::Good, "certificate", said)
    } else if left.is_positive() {
        Check {
            mend: vec!["journalctl -u agentd --grep renew".to_owned()],
            ..Check::new(
                State::Failed,
                "certificate",
                format!("{said}: it should have been renewed; its log says why not"),
            )
        }
    } else {
        Check::new(
            State::Failed,
            "certificate",
            format!(
                "it ended at {ends:.0}: the agent asks to be let in again, and an operator approves it \
                     (`holdfast host requests`)"
            ),
        )
    };
    [hub, certificate]
}

fn life_left(left: SignedDuration) -> String {
    match left.as_hours().max(0) {
        hours @ ..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(days: i64) -> SignedDuration {
        SignedDuration::from_hours(days * 24)
    }

    #[test]
    fn a_certificate_is_good_until_its_renewal_has_failed_for_hours() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let of = |left: SignedDuration| {
            let contact = Contact { reached_at: Some(now), problem: None, certificate_ends_at: now + left };
            status(&contact, now)[1].clone()
        };
        let hours = SignedDuration::from_hours;
        assert!(of(days(30)).detail.contains("30 days"), "{:?}", of(days(30)));
        assert!(of(hours(23)).detail.contains("23 hours"), "{:?}", of(hours(23)));
        assert_eq!(of(hours(4)).state, State::Good);
        assert_eq!(of(hours(4) - SignedDuration::from_secs(1)).state, State::Failed);
        assert!(of(hours(1)).detail.contains("should have been renewed"), "{:?}", of(hours(1)));
        assert!(of(days(-1)).detail.contains("let in again"), "{:?}", of(days(-1)));
    }

    #[test]
    fn disks_that_are_not_read_are_a_notice_and_an_old_reading_a_fault() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let of = |minutes: Option<i64>| {
            let read = minutes.map(|minutes| now - SignedDuration::from_mins(minutes));
            let section = serde_json::json!({ "read_at": now, "disks_read_at": read });
            disks(&serde_json::from_value(section).unwrap(), now).state
        };
        for (minutes, state) in [
            (None, State::Notice),
            (Some(0), State::Good),
            (Some(180), State::Good),
            (Some(181), State::Failed),
        ] {
            assert_eq!(of(minutes), state, "{minutes:?}");
        }
    }

    #[test]
    fn packages_that_are_not_read_are_a_fault_and_what_apt_refuses_a_notice() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let none = serde_json::json!({ "debian": 0, "proxmox": 0, "other": 0, "security": 0, "removals": 0 });
        let of = |minutes: i64, pending: &serde_json::Value| {
            let read = now - SignedDuration::from_mins(minutes);
            let section = serde_json::json!({ "read_at": read, "pending": pending, "failure": null });
            packages(&serde_json::from_value(section).unwrap(), now).state
        };
        assert_eq!((of(180, &none), of(181, &none)), (State::Good, State::Failed));
        assert_eq!(of(0, &serde_json::Value::Null), State::Notice);
    }

    #[test]
    fn a_token_that_is_not_renewed_in_time_is_a_fault() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let of = |age: i64| {
            let made_at = now - days(age);
            secret(&TokenAge { role: "operate".to_owned(), made_at, renewed_after_days: 30 }, now)
        };
        assert_eq!(
            (of(36).state, of(36).detail),
            (State::Good, "36 days old, renewed every 30 days".to_owned())
        );
        assert_eq!((of(37).state, of(37).mend.len()), (State::Failed, 2));
        let missing = secret_on_disk(Role::Observe, Path::new("/nowhere/observe"), &[], now);
        assert!(missing.state == State::Failed && missing.detail.contains("No such file"), "{missing:?}");
    }

    #[test]
    fn a_unit_that_is_installed_must_start_with_the_box() {
        let (installed, wanted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(units(installed.path(), wanted.path()).is_empty(), "no package, no units");
        std::fs::write(installed.path().join("agentd.service"), "").unwrap();
        let found = units(installed.path(), wanted.path());
        assert_eq!((found.len(), found[0].state), (1, State::Failed));
        assert_eq!(found[0].mend, ["systemctl enable --now agentd.service"]);
        std::fs::create_dir(wanted.path().join("multi-user.target.wants")).unwrap();
        let link = wanted.path().join("multi-user.target.wants/agentd.service");
        std::os::unix::fs::symlink("/nowhere", link).unwrap();
        assert_eq!(units(installed.path(), wanted.path())[0].state, State::Good);
    }

    #[test]
    fn a_clock_that_no_one_keeps_and_a_pin_that_breaks_are_reported() {
        assert_eq!(clock(Synchrony::Kept).state, State::Good);
        assert_eq!(clock(Synchrony::Unkept).state, State::Failed);
        let set = |kind: &str| {
            PinSet::from(
                format!("{kind}/sha256:{}", "ab".repeat(32)).parse::<holdfast_protocol::pin::Pin>().unwrap(),
            )
        };
        assert_eq!(pins(&set("spki")).state, State::Good);
        assert_eq!(pins(&set("leaf")).state, State::Failed);
    }
}
