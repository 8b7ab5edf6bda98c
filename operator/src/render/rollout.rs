//! Tables of rollouts.

use holdfast_protocol::release::rollout::{
    HostWait, OnFailure, RolloutHostState, RolloutHostView, RolloutState, RolloutSubject, RolloutTimes,
    RolloutView, WaitReason, WaveHosts, WaveView,
};
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, clean, list, plain, table};
use super::time::{ago, when};
use crate::screen::Style;

const ROLLOUTS: [&str; 7] = ["ROLLOUT", "VERSION", "STATE", "WAVE", "DONE", "FAILED", "PLANNED"];
const HOSTS: [&str; 4] = ["WAVE", "HOST", "STATE", "WHY"];

fn state(state: RolloutState) -> Field {
    let (word, tone) = match state {
        RolloutState::Planned => ("planned", Tone::Plain),
        RolloutState::Running => ("running", Tone::Look),
        RolloutState::Paused => ("paused", Tone::Look),
        RolloutState::Held => ("held", Tone::Bad),
        RolloutState::RollingBack => ("rolling back", Tone::Bad),
        RolloutState::Aborted => ("aborted", Tone::Plain),
        RolloutState::Finished => ("finished", Tone::Good),
    };
    (word.to_owned(), tone)
}

fn hosts(view: &RolloutView) -> impl Iterator<Item = &RolloutHostView> {
    view.waves.iter().flat_map(|wave| &wave.hosts)
}

fn count(view: &RolloutView, state: RolloutHostState) -> usize {
    hosts(view).filter(|host| host.state == state).count()
}

fn wave(view: &RolloutView) -> String {
    let open = view.open.map_or_else(|| NOTHING.to_owned(), |open| open.number.to_string());
    format!("{open} of {}", view.waves.len())
}

/// All of them.
pub fn rollouts(all: &[RolloutView], now: Timestamp, style: Style) -> String {
    if all.is_empty() {
        return "There is no rollout. `holdfast rollout plan` makes one.\n".to_owned();
    }
    let rows = all.iter().map(|view| {
        let failed = count(view, RolloutHostState::Failed);
        vec![
            plain(view.number),
            plain(view.version),
            state(view.state),
            plain(wave(view)),
            plain(format!("{} of {}", count(view, RolloutHostState::Done), hosts(view).count())),
            (failed.to_string(), if failed == 0 { Tone::Plain } else { Tone::Bad }),
            plain(format!("{} by {}", when(view.at, now), view.by)),
        ]
    });
    table(&ROLLOUTS, rows, style)
}

/// One line for a log.
pub fn line(view: &RolloutView) -> String {
    let settled = view.open.and_then(|open| open.settled_at).map_or("", |_| ", soaking");
    format!(
        "rollout {} of {}: {}, wave {}{settled}, {} of {} hosts done, {} failed",
        view.number,
        view.version,
        state(view.state).0,
        wave(view),
        count(view, RolloutHostState::Done),
        hosts(view).count(),
        count(view, RolloutHostState::Failed)
    ) + &next_offer(view).map_or_else(String::new, |next| format!("; {next}"))
}

/// Who is offered the release next, and when. Without the time until then, so that it changes only with the rollout.
fn next_offer(view: &RolloutView) -> Option<String> {
    let offers = hosts(view).filter_map(|host| {
        let HostWait { why, until } = host.wait?;
        Some((until?, host, why)).filter(|_| why != WaitReason::Host)
    });
    let (at, host, why) = offers.min_by_key(|(at, ..)| *at)?;
    Some(match why {
        WaitReason::Wave => format!("the next wave opens {} at the earliest", moment(at)),
        WaitReason::RolloutWindow
        | WaitReason::HostWindow
        | WaitReason::Blackout
        | WaitReason::Rate
        | WaitReason::Back
        | WaitReason::Host => {
            format!("next is {}: {}", host.host, waiting(HostWait { why, until: Some(at) }, &moment))
        }
    })
}

/// `Tue 2026-11-24 20:00Z`.
fn moment(at: Timestamp) -> String {
    at.strftime("%a %Y-%m-%d %H:%MZ").to_string()
}

/// Why a host waits.
fn waiting(wait: HostWait, at: &dyn Fn(Timestamp) -> String) -> String {
    let or = |then: &dyn Fn(String) -> String, otherwise: &str| {
        wait.until.map_or_else(|| otherwise.to_owned(), |until| then(at(until)))
    };
    match wait.why {
        WaitReason::Wave => {
            or(&|at| format!("its wave opens {at} at the earliest"), "its wave opens after those before it")
        }
        WaitReason::RolloutWindow => {
            or(&|at| format!("the window of the rollout opens {at}"), "no window of the rollout opens for it")
        }
        WaitReason::HostWindow => {
            or(&|at| format!("its window opens {at}"), "its windows and those of the rollout never meet")
        }
        WaitReason::Blackout => {
            or(&|at| format!("nothing is offered today; it is from {at}"), "nothing is offered today")
        }
        WaitReason::Rate => {
            or(&|at| format!("its turn by the rate comes {at}"), "its turn by the rate comes later")
        }
        WaitReason::Back => "it is offered the release to go back to".to_owned(),
        WaitReason::Host => or(
            &|at| format!("it is offered the release, and counts as failed {at}"),
            "it is offered the release",
        ),
    }
}

/// One with its waves and hosts.
pub fn rollout(view: &RolloutView, now: Timestamp, style: Style) -> String {
    let mut facts = vec![
        ("Rollout", view.number.to_string()),
        ("Release", release(view)),
        ("State", state(view.state).0),
        ("Planned", format!("{} by {}", when(view.at, now), view.by)),
    ];
    facts.extend(view.reason.as_ref().map(|reason| ("Reason", clean(reason))));
    if let Some(open) = view.open {
        let settled =
            open.settled_at.map(|at| format!(", soaking since {}", when(at, now))).unwrap_or_default();
        facts.push(("Open", format!("wave {} since {}{settled}", open.number, when(open.opened_at, now))));
    }
    if let OnFailure::RollBack(to) = view.on_failure {
        facts.push(("On failure", format!("hosts go back to release {to}")));
    }
    facts.extend(times(&view.times));
    if let Some(at) = view.next_wave_at {
        facts.push(("Next wave", format!("{} ({}) at the earliest", moment(at), ago(at, now))));
    }
    let bounds: String = (1..).zip(&view.waves).map(|(number, wave)| bounds(number, wave)).collect();
    let rows = (1_u32..)
        .zip(&view.waves)
        .flat_map(|(number, wave)| wave.hosts.iter().map(move |one| row(number, one, now)));
    let next = next_step(view);
    format!("{}\n{bounds}\n{}{next}", list(&facts), table(&HOSTS, rows, style))
}

fn release(view: &RolloutView) -> String {
    match view.subject {
        RolloutSubject::Agent => view.version.to_string(),
        RolloutSubject::GuestAgent => format!("{}, the guest agent in the guests of the hosts", view.version),
        RolloutSubject::Golden => format!("{}, the golden image for new guests of the hosts", view.version),
    }
}

/// When it offers the release, where that is not at any time.
fn times(times: &RolloutTimes) -> Vec<(&'static str, String)> {
    let RolloutTimes { windows, not, per_hour } = times;
    let mut facts = Vec::new();
    if !windows.is_empty() {
        facts.push(("Windows", windows.to_string()));
    }
    if !not.is_empty() {
        facts.push(("Not on", not.to_string()));
    }
    facts
        .extend(per_hour.map(|hosts| ("Rate", format!("newly offered to at most {hosts} hosts in an hour"))));
    facts
}

/// What selected the hosts of a wave.
fn selected_by(selects: Option<&WaveHosts>) -> String {
    match selects {
        Some(WaveHosts::Labelled(selector)) => format!(" with label {selector}"),
        Some(WaveHosts::Named(_)) => " by name".to_owned(),
        Some(WaveHosts::Count(_)) => " by number".to_owned(),
        Some(WaveHosts::Rest) => " that were left".to_owned(),
        None => String::new(),
    }
}

fn bounds(number: u32, wave: &WaveView) -> String {
    format!(
        "Wave {number}: {} hosts{}, {} may fail, soak {} s, time-out {} s\n",
        wave.hosts.len(),
        selected_by(wave.selects.as_ref()),
        wave.max_failures,
        wave.soak_s,
        wave.timeout_s
    )
}

fn row(number: u32, host: &RolloutHostView, now: Timestamp) -> Vec<Field> {
    let (word, tone) = match host.state {
        RolloutHostState::Waiting => ("waiting", Tone::Plain),
        RolloutHostState::Done => ("done", Tone::Good),
        RolloutHostState::Failed => ("failed", Tone::Bad),
        RolloutHostState::Accepted => ("failed, accepted", Tone::Look),
        RolloutHostState::Withdrawn => ("withdrawn", Tone::Look),
        RolloutHostState::Back => ("went back", Tone::Good),
        RolloutHostState::Gone => ("revoked", Tone::Plain),
    };
    let at = |at: Timestamp| format!("{} ({})", moment(at), ago(at, now));
    let wait = || host.wait.map(|wait| waiting(wait, &at));
    let why = host.why.clone().or_else(wait).unwrap_or_else(|| NOTHING.to_owned());
    vec![plain(number), plain(&host.host), (word.to_owned(), tone), plain(why)]
}

fn next_step(view: &RolloutView) -> String {
    let number = view.number;
    match view.state {
        RolloutState::Planned => {
            format!("\nNothing is offered yet. `holdfast rollout start {number}` begins.\n")
        }
        RolloutState::Running => format!("\n`holdfast rollout watch {number}` follows it.\n"),
        RolloutState::Paused => {
            format!("\nNothing is offered. `holdfast rollout resume {number}` goes on.\n")
        }
        RolloutState::Held => format!(
            "\nNothing is offered. `holdfast rollout resume {number}` accepts the failures and goes on; \
             `holdfast rollout abort {number}` ends it.\n"
        ),
        RolloutState::RollingBack => format!(
            "\nHosts that were offered the release are offered the one to go back to. `holdfast rollout abort {number}` ends that.\n"
        ),
        RolloutState::Aborted => {
            "\nHosts that run the release go on with it. The way back is a newer release.\n".to_owned()
        }
        RolloutState::Finished => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::screen::Colour;

    fn view() -> RolloutView {
        let host = |name: &str, why: &str, until: Option<&str>| {
            let mut wait = json!({ "why": why });
            if let Some(until) = until {
                wait["until"] = until.into();
            }
            json!({ "host": name, "state": "waiting", "wait": wait })
        };
        let bounds = |hosts: serde_json::Value, selects: serde_json::Value| {
            json!({
                "hosts": hosts, "selects": selects, "max_failures": 1, "soak_s": 60, "timeout_s": 600
            })
        };
        let first = json!([
            host("box1", "host", Some("2026-11-27T13:00:00Z")),
            host("box2", "host_window", Some("2026-12-01T19:00:00Z")),
            host("box3", "rate", Some("2026-11-27T14:00:00Z")),
        ]);
        let second = json!([host("box4", "wave", None)]);
        serde_json::from_value(json!({
            "number": 3, "version": "2026.12.0", "state": "running", "by": "ada", "at": "2026-11-27T11:00:00Z",
            "times": { "windows": ["daily 20:00-04:00 Europe/Vienna"], "not": ["2026-12-24..2026-12-26 UTC"], "per_hour": 4 },
            "open": { "number": 1, "opened_at": "2026-11-27T11:00:00Z" },
            "waves": [bounds(first, json!({ "labelled": { "tier": "canary" } })), bounds(second, json!("rest"))]
        }))
        .unwrap()
    }

    #[test]
    fn it_says_what_each_host_waits_for_and_who_is_next() {
        let now = "2026-11-27T12:00:00Z".parse().unwrap();
        let text = rollout(&view(), now, Style { colour: Colour::Off, columns: None });
        for part in [
            "Wave 1: 3 hosts with label tier=canary, 1 may fail",
            "Wave 2: 1 hosts that were left",
            "daily 20:00-04:00 Europe/Vienna",
            "2026-12-24..2026-12-26 UTC",
            "at most 4 hosts in an hour",
            "it is offered the release, and counts as failed Fri 2026-11-27 13:00Z (in 60 min)",
            "its window opens Tue 2026-12-01 19:00Z (in 4 d)",
            "its turn by the rate comes Fri 2026-11-27 14:00Z (in 2 h)",
            "its wave opens after those before it",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let line = line(&view());
        assert!(line.ends_with("; next is box3: its turn by the rate comes Fri 2026-11-27 14:00Z"), "{line}");
    }
}
