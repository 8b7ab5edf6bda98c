//! Tables and pages of hosts, enrollment requests and invites.

use holdfast_protocol::host_maintenance::{HostMaintenancePhase, HostMaintenanceReport};
use holdfast_protocol::id::HostName;
use holdfast_protocol::job::HostFingerprint;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::operation_tries::{Tries, tries};
use holdfast_protocol::operator::{
    EnrollmentRequestState, EnrollmentRequestView, EpochEnd, HostDetail, HostState, HostView, InviteCreated,
    PastEpoch,
};
use holdfast_protocol::report::{
    AddressFilterFinding, AssignedShare, FactAges, GuestReport, HostSection, Sections, StorageReport,
    StorageState, address_filter_findings,
};
use holdfast_protocol::restore::{RestoreOrder, RestoreState};
use jiff::Timestamp;

use super::builds;
use super::condition::conditions;
use super::guest;
use super::hardware::hardware;
use super::host_state::state;
use super::table::{Field, NOTHING, Tone, list, plain, table};
use super::time::{age, ago, bytes, stamp, when};
use super::tunnels::tunnels;
use super::updates::updates;
use crate::progress::{current_step, outcome_line};
use crate::screen::Style;

pub const HEADER: [&str; 7] = ["NAME", "STATE", "SEEN", "WANTED", "HELD", "GUESTS", "ATTENTION"];

/// All hosts, those that need a person first.
pub fn hosts(hosts: &[HostView], now: Timestamp, style: Style) -> String {
    if hosts.is_empty() {
        return "No host is enrolled yet. Make an invitation with `holdfast host invite NAME`.\n".to_owned();
    }
    let mut sorted: Vec<&HostView> = hosts.iter().collect();
    sorted.sort_by_key(|host| (urgency(host), &host.name));
    let mut header = HEADER.to_vec();
    let is_labelled = hosts.iter().any(|host| !host.labels.is_empty());
    if is_labelled {
        header.push("LABELS");
    }
    let rows = sorted.iter().map(|host| {
        let labels = Some(plain(&host.labels)).filter(|_| is_labelled);
        row(host, now).into_iter().chain(labels).collect()
    });
    let mut text = table(&header, rows, style);
    let needy: Vec<&str> =
        sorted.iter().filter(|host| needs_attention(host)).map(|host| host.name.as_str()).collect();
    if let Some(first) = needy.first() {
        let count = needy.len();
        let verb = if count == 1 { "host needs" } else { "hosts need" };
        text.push_str(&format!("\n{count} {verb} attention. Begin with `holdfast host show {first}`.\n"));
    }
    text
}

fn needs_attention(host: &HostView) -> bool {
    host.attention > 0 || is_bad(host.state)
}

const fn is_bad(state: HostState) -> bool {
    match state {
        HostState::Degraded | HostState::Frozen | HostState::NeverSeen | HostState::Offline => true,
        HostState::Late | HostState::New | HostState::Online | HostState::Revoked => false,
    }
}

/// Small is urgent. A host that was let go comes last.
const fn urgency(host: &HostView) -> u8 {
    match host.state {
        HostState::Offline | HostState::Frozen | HostState::Degraded | HostState::NeverSeen => {
            // A host that is worked on is expected to be unwell.
            if host.maintenance_until.is_some() { 1 } else { 0 }
        }
        HostState::Revoked => 4,
        _ if host.attention > 0 => 1,
        HostState::Late => 2,
        HostState::New | HostState::Online => 3,
    }
}

/// One line of the list.
pub fn row(host: &HostView, now: Timestamp) -> Vec<Field> {
    let held = if host.held < host.wanted { Tone::Look } else { Tone::Plain };
    let guests = if host.guests_running < host.guests { Tone::Look } else { Tone::Plain };
    let attention = if host.attention > 0 { Tone::Bad } else { Tone::Plain };
    vec![
        plain(&host.name),
        state_in_list(host),
        plain(host.seen_at.map_or_else(|| "never".to_owned(), |at| ago(at, now))),
        plain(host.wanted),
        (host.held.to_string(), held),
        (format!("{}/{}", host.guests_running, host.guests), guests),
        (host.attention.to_string(), attention),
    ]
}

fn state_in_list(host: &HostView) -> Field {
    let (word, tone) = state(host.state);
    let word = if host.maintenance_until.is_some() { format!("{word}, maintenance") } else { word };
    (word, tone)
}

/// The state with its reason.
fn state_line(host: &HostView, now: Timestamp) -> String {
    let (word, _) = state(host.state);
    let reason = match host.state {
        HostState::Degraded => host.degraded.as_ref().map(|degraded| {
            let code = degraded.condition.map(|code| format!("{code}: ")).unwrap_or_default();
            format!(" for {}: {code}{}", age(degraded.since, now), degraded.reason)
        }),
        HostState::Late | HostState::Offline => {
            host.seen_at.map(|seen_at| format!(": silent for {}", age(seen_at, now)))
        }
        HostState::NeverSeen => Some(": it was enrolled, and its agent has never reported".to_owned()),
        HostState::Frozen | HostState::New | HostState::Online | HostState::Revoked => None,
    };
    word + &reason.unwrap_or_default()
}

/// One host with all that it says.
pub fn host(detail: &HostDetail, now: Timestamp, style: Style) -> String {
    let HostDetail { host, sections, restores, epochs, offer } = detail;
    let mut pairs = about(host, sections, now);
    let builds = sections.agent.as_ref().and_then(|agent| agent.builds.as_ref());
    pairs.extend(builds::lines(builds, offer.as_ref(), now));
    let mut text = list(&pairs);
    if host.state == HostState::Frozen {
        text.push_str(&frozen(&host.name));
    }
    if let Some(degraded) = host.degraded.as_ref().filter(|degraded| degraded.condition.is_none()) {
        text.push_str(&format!(
            "\nIts agent has not seen Proxmox since {}: {}\nWhat is shown below is as old; whether a guest runs is unknown.\n",
            when(degraded.since, now),
            degraded.reason
        ));
    }
    let desired = sections.desired.as_ref();
    if let Some(refused) = desired.and_then(|desired| desired.refused.as_ref()) {
        let which = refused.generation.map_or_else(|| "a document".to_owned(), |g| format!("generation {g}"));
        text.push_str(&format!("\nThe agent refuses {which}: {}\n", refused.problem));
    }
    for problem in sections.agent.iter().flat_map(|agent| &agent.problems) {
        text.push_str(&format!("\nThe agent says: {problem}\n"));
    }
    if let Some(set) = sections.conditions.as_ref().filter(|set| !set.conditions().is_empty()) {
        text.push('\n');
        text.push_str(&conditions(set, sections.guests.as_deref().unwrap_or_default(), now, style));
    }
    if let Some(storages) = sections.host.as_ref().map(|host| &host.storages).filter(|all| !all.is_empty()) {
        text.push('\n');
        text.push_str(&table(&["STORAGE", "STATE", "USED", "SIZE"], storages.iter().map(storage), style));
    }
    text.push_str(&sections.host.as_ref().map(given).unwrap_or_default());
    if let Some(agent) = sections.agent.as_ref().filter(|agent| !agent.tunnels.is_empty()) {
        text.push('\n');
        text.push_str(&tunnels(&agent.tunnels, now, style));
    }
    if let Some(section) = &sections.hardware {
        text.push('\n');
        text.push_str(&hardware(section, now, style));
    }
    if let Some(section) = &sections.updates {
        text.push('\n');
        text.push_str(&updates(section, now, style));
    }
    if let Some(guests) = sections.guests.as_deref().filter(|guests| !guests.is_empty()) {
        text.push('\n');
        let guests: Vec<_> = guests.iter().map(|guest| (&host.name, guest)).collect();
        text.push_str(&guest::guests(&guests, style));
    }
    text.push_str(&addresses(sections.guests.as_deref().unwrap_or_default()));
    text.push_str(&work(sections, now));
    text.push_str(&orders(host, restores, now));
    text.push_str(&past_epochs(epochs, now));
    text
}

/// Guests that nothing holds to their addresses, with the setting that changes it.
fn addresses(guests: &[GuestReport]) -> String {
    let open = address_filter_findings(guests).into_iter().filter(|finding| finding.state.is_open());
    let line = |finding: &AddressFilterFinding| {
        format!("  {}\n", super::table::clean(&format!("{}: {}", finding.guests, finding.state.words())))
    };
    let lines: String = open.map(|finding| line(&finding)).collect();
    if lines.is_empty() { lines } else { format!("\nAddresses of guests:\n{lines}") }
}

/// Earlier epochs, each with the range of its own audit numbers.
fn past_epochs(epochs: &[PastEpoch], now: Timestamp) -> String {
    if epochs.is_empty() {
        return String::new();
    }
    let lines: String = epochs
        .iter()
        .map(|epoch| {
            let end = match epoch.end {
                EpochEnd::Readmitted => "readmitted after a revocation",
                EpochEnd::Restored => "replaced by another machine",
            };
            format!(
                "  until {}: certificates before {}, audit lines up to {}; {end}\n",
                when(epoch.ended_at, now),
                epoch.before_generation,
                epoch.audit_seen
            )
        })
        .collect();
    format!("\nEarlier epochs (each numbers its audit lines from 1):\n{lines}")
}

fn orders(host: &HostView, restores: &[RestoreOrder], now: Timestamp) -> String {
    let open =
        restores.iter().filter(|order| matches!(order.state, RestoreState::Unused | RestoreState::Ended));
    let lines = open.map(|order| {
        let (name, sha256) = (&host.name, order.order.as_str());
        format!(
            "\nOrder to restore {name}, {}: signed {} by {}, {sha256}\n  holdfast host withdraw {name} --order {sha256} takes it \
             back.\n",
            order.state.as_str(),
            when(order.at, now),
            order.by
        )
    });
    lines.collect()
}

/// What a person must do, in order.
fn frozen(name: &HostName) -> String {
    format!(
        "\nTwo machines used this host's identity, so neither is served: a copy of the host, or of its agent's state folder, is \
         running.\nFind the copy and stop it. Then `holdfast host revoke {name}` and `holdfast host invite {name}`; on the \
         right box `agentd enroll`, which says what to remove first.\n"
    )
}

fn about(host: &HostView, sections: &Sections, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut pairs = vec![
        ("Host", format!("{} ({})", host.name, host.id)),
        ("State", state_line(host, now)),
        ("Seen", host.seen_at.map_or_else(|| "never".to_owned(), |at| when(at, now))),
        ("Desired", format!("generation {}, the agent holds {}", host.wanted, host.held)),
        ("Certificate", format!("ends {}", when(host.certificate_ends_at, now))),
    ];
    if !host.labels.is_empty() {
        pairs.push(("Labels", host.labels.to_string()));
    }
    if !host.update_windows.is_empty() {
        pairs.push(("Updates", format!("offered by rollouts {}", host.update_windows)));
    }
    if let Some(until) = host.maintenance_until {
        pairs.push(("Maintenance", format!("until {}: no alert of it is sent", when(until, now))));
    }
    if let Some(report) = sections.agent.as_ref().and_then(|agent| agent.maintenance.as_ref()) {
        pairs.push(("Drain", drain(report, now)));
    }
    if let Some(key) = sections.agent.as_ref().and_then(|agent| agent.recipient.as_ref()) {
        pairs.push((
            "Fingerprint",
            format!("{}, by the hub's word", HostFingerprint::of(host.id, &host.name, key)),
        ));
    }
    if let Some(agent) = &sections.agent {
        pairs.push(("Agent", format!("agentd {}, up since {}", agent.version, when(agent.started_at, now))));
    }
    if let Some(host) = &sections.host {
        pairs.push(("Box", about_box(host)));
        pairs.extend(host.ages.map(|ages| ("Facts", about_ages(ages))));
    }
    pairs
}

/// How far the agent is with the maintenance of its host.
fn drain(report: &HostMaintenanceReport, now: Timestamp) -> String {
    let names: Vec<&str> = report.not_back.iter().map(|name| name.as_str()).collect();
    let names = super::table::clean(&names.join(", "));
    match (report.phase, names.is_empty()) {
        (HostMaintenancePhase::Draining, _) => {
            format!("{} operations are under way; nothing new begins", report.open_operations)
        }
        (HostMaintenancePhase::Drained, true) => {
            format!("drained, nothing begins until {}", when(report.until, now))
        }
        (HostMaintenancePhase::Drained, false) => {
            format!("drained, nothing begins until {}; not there now: {names}", when(report.until, now))
        }
        (HostMaintenancePhase::Incomplete, _) => {
            format!("it ended {}, and this did not come back: {names}", ago(report.until, now))
        }
    }
}

fn about_box(host: &HostSection) -> String {
    let memory = format!("{} of {} memory used", bytes(host.memory_used_bytes), bytes(host.memory_bytes));
    format!("{}, Proxmox VE {}, {} CPUs, {memory}", host.node, host.proxmox_version, host.cpus)
}

/// What guests were given of it, a line each.
fn given(host: &HostSection) -> String {
    let Some(assigned) = &host.assigned else { return String::new() };
    let unread = match assigned.unread {
        0 => String::new(),
        count => format!(", without {count} whose configuration could not be read"),
    };
    let guests = if assigned.guests == 1 { "guest" } else { "guests" };
    let line = |share: &AssignedShare| {
        let beyond = if share.is_over() { format!("  above {} %", share.level) } else { String::new() };
        format!("  {}{beyond}\n", super::table::clean(&share.to_string()))
    };
    let lines: String = host.assigned_shares().iter().map(line).collect();
    format!("\nGiven to {} {guests}{unread}:\n{lines}", assigned.guests)
}

/// How old what is shown can be.
fn about_ages(ages: FactAges) -> String {
    let FactAges { power_s, configuration_s, storage_s, version_s } = ages;
    format!(
        "at most so old at the last contact: who runs {power_s} s, configurations {configuration_s} s, storages {storage_s} s, \
         version {} min",
        version_s.div_ceil(60)
    )
}

fn storage(storage: &StorageReport) -> Vec<Field> {
    let (word, tone) = match storage.state {
        StorageState::Active => ("active", Tone::Good),
        StorageState::Inactive => ("inactive", Tone::Bad),
        StorageState::Unknown => ("unknown", Tone::Look),
    };
    let amount = |count: Option<u64>| plain(count.map_or_else(|| NOTHING.to_owned(), bytes));
    vec![
        plain(&storage.name),
        (word.to_owned(), tone),
        amount(storage.used_bytes),
        amount(storage.total_bytes),
    ]
}

fn work(sections: &Sections, now: Timestamp) -> String {
    let mut text = String::new();
    for Tries { last: operation, count, first_at } in
        tries(sections.operations.as_deref().unwrap_or_default())
    {
        let line = if operation.status.is_end() {
            let at = operation.ended_at.unwrap_or(operation.opened_at);
            let times = match count {
                1 => String::new(),
                more => format!(" ({more} tries, the first {})", ago(first_at, now)),
            };
            format!("{}  {}{times}", outcome_line(operation), ago(at, now))
        } else {
            let (name, kind) = (&operation.name, operation.kind.as_str());
            format!("{name}  {kind}  {} (began {})", current_step(operation), ago(operation.opened_at, now))
        };
        text.push_str(&format!("  {}\n", super::table::clean(&line)));
    }
    if !text.is_empty() {
        text.insert_str(0, "\nWork:\n");
    }
    let waiting: String = sections
        .waiting
        .iter()
        .flatten()
        .map(|waiting| super::table::clean(&format!("  {}: {}", waiting.effect, waiting.reason)) + "\n")
        .collect();
    if !waiting.is_empty() {
        text.push_str(&format!("\nWaits for a signature:\n{waiting}"));
    }
    text
}

/// Hosts that request enrollment.
pub fn enrollment_requests(
    enrollment_requests: &[EnrollmentRequestView],
    now: Timestamp,
    style: Style,
) -> String {
    if enrollment_requests.is_empty() {
        return "No enrollment requests.\n".to_owned();
    }
    let rows = enrollment_requests.iter().map(|request| {
        let (word, tone) = match request.state {
            EnrollmentRequestState::Pending => ("pending", Tone::Look),
            EnrollmentRequestState::Approved => ("approved", Tone::Good),
            EnrollmentRequestState::Refused => ("refused", Tone::Plain),
        };
        vec![
            plain(request.id),
            plain(&request.claimed_name),
            (word.to_owned(), tone),
            plain(ago(request.first_at, now)),
            plain(request.fingerprint),
        ]
    });
    let mut text = table(&["REQUEST", "NAME", "STATE", "SINCE", "FINGERPRINT"], rows, style);
    if enrollment_requests.iter().any(|request| request.state == EnrollmentRequestState::Pending) {
        text.push_str(
            "\nRead the fingerprint on the host itself (`agentd enroll --request` shows it), then \
             `holdfast host approve REQUEST NAME --fingerprint PIN`. With `--tunnel-token TUNNEL` it gets the token of a tunnel \
             in the same step.\n",
        );
    }
    for request in enrollment_requests {
        text.push_str(&readmission(request, now));
    }
    text
}

/// The host that it became, or the revoked hosts that it may be.
fn readmission(request: &EnrollmentRequestView, now: Timestamp) -> String {
    let mut text = String::new();
    if let Some(host) = request.host {
        text.push_str(&format!("\n{} was approved as host {host}.\n", request.id));
    }
    if let Some(host) = request.holder {
        text.push_str(&format!(
            "\n{} has the key of host {host}, whose certificate was not renewed in time. Compare the fingerprint on the \
             machine itself (`agentd status` shows it). To let that host go on: `holdfast host approve {} {} --fingerprint \
             PIN --returns {host}`.\n",
            request.id, request.id, request.claimed_name
        ));
    }
    for revoked in &request.revoked {
        let seen = revoked
            .seen_at
            .map_or_else(|| "never heard of".to_owned(), |at| format!("last heard of {}", ago(at, now)));
        text.push_str(&format!(
            "\n{} gives the name of revoked host {}, {seen}. A name proves nothing: compare the fingerprint on the machine \
             itself. To readmit that host with its history: `holdfast host approve {} {} --fingerprint PIN --returns \
             {}`.\n",
            request.id, revoked.id, request.id, request.claimed_name, revoked.id
        ));
    }
    text
}

/// An invite to take a host's place, in the same form.
pub fn restore_invite(invite: &InviteCreated, host: &str, order: &Sha256Text, now: Timestamp) -> String {
    let until = format!("{} ({})", stamp(invite.expires_at), ago(invite.expires_at, now));
    format!(
        "{}\n\nShown this once, good for one new box until {until}. Once it is used, the old box of {host} is not served any \
         more.\nOn the new box: `agentd enroll --restore`, and paste this line when it asks.\nUntil then it is taken back by \
         `holdfast host withdraw {host} --order {}`.\n",
        invite.code.expose(),
        order.as_str()
    )
}

/// A new invite: its code is on a line of its own, to be copied.
pub fn invite(invite: &InviteCreated, now: Timestamp) -> String {
    let until = format!("{} ({})", stamp(invite.expires_at), ago(invite.expires_at, now));
    format!(
        "{}\n\nShown this once, good for one host until {until}.\n\
         On the box: `agentd enroll`, and paste this line when it asks.\n",
        invite.code.expose()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_drain_says_how_far_it_is_and_what_is_not_there() {
        let says = |phase: &str, open: u32, not_back: &[&str]| {
            let report = json!({ "phase": phase, "since": "2026-11-21T02:00:00Z", "until": "2026-11-21T04:00:00Z",
                "open_operations": open, "not_back": not_back });
            drain(&serde_json::from_value(report).unwrap(), "2026-11-21T03:00:00Z".parse().unwrap())
        };
        assert_eq!(says("draining", 2, &[]), "2 operations are under way; nothing new begins");
        assert_eq!(says("drained", 0, &[]), "drained, nothing begins until 2026-11-21 04:00:00Z (in 60 min)");
        assert!(says("drained", 0, &["guest web-1"]).ends_with("; not there now: guest web-1"));
        assert!(says("incomplete", 0, &["guest web-1"]).ends_with("did not come back: guest web-1"));
    }
}
