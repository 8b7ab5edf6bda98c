//! Tables of rollouts.

use holdfast_protocol::release::rollout::{
    RolloutHostState, RolloutHostView, RolloutState, RolloutView, WaveView,
};
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, clean, list, plain, table};
use super::time::when;
use crate::screen::Style;

const ROLLOUTS: [&str; 7] = ["ROLLOUT", "VERSION", "STATE", "WAVE", "DONE", "FAILED", "PLANNED"];
const HOSTS: [&str; 4] = ["WAVE", "HOST", "STATE", "WHY"];

fn state(state: RolloutState) -> Field {
    let (word, tone) = match state {
        RolloutState::Planned => ("planned", Tone::Plain),
        RolloutState::Running => ("running", Tone::Look),
        RolloutState::Paused => ("paused", Tone::Look),
        RolloutState::Held => ("held", Tone::Bad),
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
    )
}

/// One with its waves and hosts.
pub fn rollout(view: &RolloutView, now: Timestamp, style: Style) -> String {
    let mut facts = vec![
        ("Rollout", view.number.to_string()),
        ("Release", view.version.to_string()),
        ("State", state(view.state).0),
        ("Planned", format!("{} by {}", when(view.at, now), view.by)),
    ];
    facts.extend(view.reason.as_ref().map(|reason| ("Reason", clean(reason))));
    if let Some(open) = view.open {
        let settled =
            open.settled_at.map(|at| format!(", soaking since {}", when(at, now))).unwrap_or_default();
        facts.push(("Open", format!("wave {} since {}{settled}", open.number, when(open.opened_at, now))));
    }
    let bounds: String = (1..).zip(&view.waves).map(|(number, wave)| bounds(number, wave)).collect();
    let rows = (1_u32..)
        .zip(&view.waves)
        .flat_map(|(number, wave)| wave.hosts.iter().map(move |one| row(number, one)));
    let next = next_step(view);
    format!("{}\n{bounds}\n{}{next}", list(&facts), table(&HOSTS, rows, style))
}

fn bounds(number: u32, wave: &WaveView) -> String {
    format!(
        "Wave {number}: {} hosts, {} may fail, soak {} s, time-out {} s\n",
        wave.hosts.len(),
        wave.max_failures,
        wave.soak_s,
        wave.timeout_s
    )
}

fn row(number: u32, host: &RolloutHostView) -> Vec<Field> {
    let (word, tone) = match host.state {
        RolloutHostState::Waiting => ("waiting", Tone::Plain),
        RolloutHostState::Done => ("done", Tone::Good),
        RolloutHostState::Failed => ("failed", Tone::Bad),
        RolloutHostState::Accepted => ("failed, accepted", Tone::Look),
        RolloutHostState::Gone => ("revoked", Tone::Plain),
    };
    let why = host.why.clone().unwrap_or_else(|| NOTHING.to_owned());
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
        RolloutState::Aborted => {
            "\nHosts that run the release go on with it. The way back is a newer release.\n".to_owned()
        }
        RolloutState::Finished => String::new(),
    }
}
