//! Tests of tunnels: parsing, judgement, debouncing, restarts.

use holdfast_protocol::report::{RestartOutcome, TunnelReport, TunnelState, UnitActivity};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::judgement::{Certainty, judge};
use super::restarts::{RESTARTS_PER_DAY, RestartAnswer, RestartRequests};
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn tunnel(fields: Value) -> Tunnel {
    let mut all = json!({ "name": "cf", "unit": "cloudflared.service" });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn service(activity: UnitActivity) -> Option<ServiceState> {
    Some(ServiceState { activity, since: Some(at(-5_000)), restarted: 0 })
}

fn reading(activity: UnitActivity, connections: Proof<u32>, probe: Proof<String>) -> TunnelReading {
    TunnelReading { service: service(activity), connections, probe }
}

fn failed<T>() -> Proof<T> {
    Proof::Failed("timed out".to_owned())
}

fn said() -> Proof<String> {
    Proof::Answered("200".to_owned())
}

#[test]
fn the_answers_of_cloudflared_are_read() {
    let (ready, not_ready) = (
        include_bytes!("fixtures/ready.json").as_slice(),
        include_bytes!("fixtures/not-ready.json").as_slice(),
    );
    let page = include_bytes!("fixtures/metrics.txt").as_slice();
    assert_eq!((cloudflared::ready(200, ready), cloudflared::ready(503, not_ready)), (Some(4), Some(0)));
    assert_eq!(cloudflared::in_metrics(200, page), Some(3));
    for (status, body) in [
        (404, ready),
        (200, b"OK\n".as_slice()),
        (200, br#"{"readyConnections":-1}"#),
        (200, br#"{"readyConnections":100000}"#),
    ] {
        assert_eq!(cloudflared::ready(status, body), None, "{}", String::from_utf8_lossy(body));
    }
    for line in [
        "cloudflared_tunnel_ha_connections NaN",
        "cloudflared_tunnel_ha_connections 1.5",
        "cloudflared_tunnel_ha_connections -1",
        "cloudflared_tunnel_ha_connections_total 4",
        "",
    ] {
        assert_eq!(cloudflared::in_metrics(200, line.as_bytes()), None, "{line}");
    }
    assert_eq!(cloudflared::in_metrics(503, page), None);
}

#[test]
fn services_are_read_in_the_order_of_the_question() {
    let text = "LoadState=loaded\nActiveState=active\nStateChangeTimestamp=@1700000000\nNRestarts=2\n\n\
                LoadState=not-found\nActiveState=inactive\nStateChangeTimestamp=\nNRestarts=0\n\n\
                ActiveState=active\n\nLoadState=loaded\nActiveState=failed\nStateChangeTimestamp=@0\nNRestarts=x\n";
    let of = |activity, since: Option<i64>, restarted| {
        Some(ServiceState { activity, since: since.and_then(|s| Timestamp::from_second(s).ok()), restarted })
    };
    assert_eq!(
        systemd::parse(text, 5),
        [
            of(UnitActivity::Active, Some(1_700_000_000), 2),
            of(UnitActivity::NotFound, None, 0),
            None,
            of(UnitActivity::Failed, None, 0),
            None
        ]
    );
    assert_eq!(systemd::parse("", 2), [None, None]);
    assert_eq!(systemd::parse(text, 1).len(), 1);
}

#[test]
fn a_probe_is_a_page_or_a_connection() {
    for good in ["https://app.example/health?x=1", "tcp://10.99.0.1:22", "tcp://[fd00::1]:443"] {
        let target = ProbeTarget::try_from(good.to_owned()).unwrap();
        assert_eq!(target.to_string(), good);
    }
    for bad in [
        "http://app.example",
        "https://",
        "https://user:pw@app.example",
        "tcp://host",
        "tcp://host:0",
        "tcp://:1",
        "tcp://a/b:1",
        "file:///etc/passwd",
        "https://a b",
    ] {
        assert!(ProbeTarget::try_from(bad.to_owned()).is_err(), "{bad}");
    }
}

#[test]
fn one_reading_is_judged_by_service_and_proofs() {
    use TunnelState as Is;
    use UnitActivity as Unit;
    let with = tunnel(json!({}));
    let none = || Proof::NotAsked;
    let table: Vec<(Unit, Proof<u32>, Proof<String>, Is)> = vec![
        (Unit::Active, none(), Proof::NotAsked, Is::Unproved),
        (Unit::Active, Proof::Answered(4), Proof::NotAsked, Is::Up),
        (Unit::Active, Proof::Answered(3), Proof::NotAsked, Is::Degraded),
        (Unit::Active, Proof::Answered(0), Proof::NotAsked, Is::Down),
        (Unit::Active, Proof::Answered(0), said(), Is::Degraded),
        (Unit::Active, Proof::Answered(0), failed(), Is::Down),
        (Unit::Active, Proof::Answered(4), failed(), Is::Degraded),
        (Unit::Active, Proof::Answered(4), said(), Is::Up),
        (Unit::Active, failed(), Proof::NotAsked, Is::Degraded),
        (Unit::Active, failed(), said(), Is::Degraded),
        (Unit::Active, failed(), failed(), Is::Down),
        (Unit::Active, none(), said(), Is::Up),
        (Unit::Active, none(), failed(), Is::Down),
        (Unit::Changing, Proof::Answered(4), said(), Is::Down),
        (Unit::Failed, none(), said(), Is::Down),
        (Unit::Inactive, none(), failed(), Is::Stopped),
        (Unit::NotFound, none(), Proof::NotAsked, Is::Down),
    ];
    for (activity, connections, probe, state) in table {
        let reading = reading(activity, connections, probe);
        assert_eq!(judge(&with, &reading).state, state, "{reading:?}");
    }
    let unasked = |probe| TunnelReading { service: None, connections: Proof::NotAsked, probe };
    assert_eq!(judge(&with, &unasked(said())).state, Is::Up);
    assert_eq!(judge(&with, &unasked(failed())).state, Is::Unknown);
    assert_eq!(judge(&with, &unasked(Proof::NotAsked)).state, Is::Unknown);
    assert_eq!(judge(&with, &reading(Unit::Failed, none(), Proof::NotAsked)).certainty, Certainty::Enough);
}

/// The reports of readings that are 30 s apart.
fn reports(of: &Tunnel, readings: &[TunnelReading]) -> Vec<TunnelReport> {
    let mut history = TunnelHistory::default();
    let turns = readings.iter().zip(0_i64..);
    turns
        .map(|(reading, turn)| {
            let (next, report) = history.next(of, reading, at(turn * 30));
            history = next;
            report
        })
        .collect()
}

#[test]
fn a_short_reconnect_is_no_change_and_a_long_one_counts_from_its_beginning() {
    let of = tunnel(json!({ "metrics": "127.0.0.1:20241" }));
    let ready = |count| reading(UnitActivity::Active, Proof::Answered(count), Proof::NotAsked);
    let states = |counts: &[u32]| {
        let readings: Vec<_> = counts.iter().map(|count| ready(*count)).collect();
        let reports = reports(&of, &readings);
        reports.iter().map(|report| (report.state, report.since)).collect::<Vec<_>>()
    };
    use TunnelState::{Degraded, Down, Up};
    assert_eq!(states(&[4, 0, 4, 0, 4]), [(Up, at(0)); 5]);
    assert_eq!(
        states(&[4, 4, 0, 0, 0, 4]),
        [(Up, at(0)), (Up, at(0)), (Up, at(0)), (Down, at(60)), (Down, at(60)), (Up, at(150))]
    );
    // Two readings that are bad in different ways.
    assert_eq!(states(&[4, 3, 0, 0]), [(Up, at(0)), (Up, at(0)), (Down, at(30)), (Down, at(30))]);
    assert_eq!(states(&[3]), [(Degraded, at(0))], "the first reading counts");
}

#[test]
fn systemds_word_counts_at_once_and_by_its_own_time() {
    let of = tunnel(json!({}));
    let all = reports(
        &of,
        &[
            reading(UnitActivity::Active, Proof::NotAsked, said()),
            reading(UnitActivity::Failed, Proof::NotAsked, failed()),
            reading(UnitActivity::Inactive, Proof::NotAsked, failed()),
        ],
    );
    let states: Vec<_> = all.iter().map(|report| (report.state, report.since)).collect();
    assert_eq!(
        states,
        [(TunnelState::Up, at(0)), (TunnelState::Down, at(-5_000)), (TunnelState::Stopped, at(-5_000))]
    );
}

#[test]
fn a_quiet_tunnel_makes_no_new_report_for_ten_minutes() {
    let of = tunnel(json!({ "metrics": "127.0.0.1:20241" }));
    let quiet = vec![reading(UnitActivity::Active, Proof::Answered(4), said()); 22];
    let all = reports(&of, &quiet);
    assert!(all[..20].iter().all(|report| report == &all[0]), "the same within ten minutes");
    assert_eq!((all[20].checked_at, all[21].checked_at), (at(600), at(600)));
    assert_eq!(all[21].connections.unwrap().since, at(0));
}

fn down(activity: UnitActivity) -> TunnelReport {
    let of = tunnel(json!({}));
    let readings = vec![reading(activity, Proof::Answered(0), Proof::NotAsked); 2];
    let mut report = reports(&of, &readings).remove(1);
    (report.state, report.since) = (TunnelState::Down, at(0));
    report
}

#[test]
fn a_restart_is_asked_for_with_growing_pauses_and_so_often_a_day() {
    let (of, report) = (tunnel(json!({})), down(UnitActivity::Active));
    let mut requests = RestartRequests::default();
    let mut asked = Vec::new();
    for second in (0..86_400).step_by(30) {
        if requests.is_due(&of, &report, at(second)) {
            requests = requests.with(&of.name, at(second));
            asked.push(second / 60);
        }
    }
    assert_eq!(asked, [3, 4, 9, 39, 159, 279]);
    assert_eq!(asked.len(), RESTARTS_PER_DAY);
    assert!(!requests.is_due(&of, &report, at(86_400)));
    assert!(requests.is_due(&of, &report, at(86_400 + 180)), "the first of them is a day old");
}

#[test]
fn what_is_stopped_changing_or_works_in_part_is_not_restarted() {
    let of = tunnel(json!({}));
    let requests = RestartRequests::default();
    let due = |tunnel: &Tunnel, report: &TunnelReport| requests.is_due(tunnel, report, at(3_600));
    assert!(due(&of, &down(UnitActivity::Active)) && due(&of, &down(UnitActivity::Failed)));
    for activity in [UnitActivity::Inactive, UnitActivity::Changing, UnitActivity::NotFound] {
        assert!(!due(&of, &down(activity)), "{activity:?}");
    }
    for state in [
        TunnelState::Up,
        TunnelState::Degraded,
        TunnelState::Stopped,
        TunnelState::Unproved,
        TunnelState::Unknown,
    ] {
        assert!(!due(&of, &TunnelReport { state, ..down(UnitActivity::Active) }), "{state:?}");
    }
    assert!(!due(&of, &TunnelReport { service: None, ..down(UnitActivity::Active) }));
    assert!(!due(&tunnel(json!({ "restart": "never" })), &down(UnitActivity::Active)));
}

#[test]
fn a_clock_that_was_ahead_holds_no_restart_back() {
    let (of, report) = (tunnel(json!({})), down(UnitActivity::Active));
    let ahead =
        (0..6).fold(RestartRequests::default(), |requests, n| requests.with(&of.name, at(900_000 + n)));
    assert!(ahead.is_due(&of, &report, at(3_600)));
    assert_eq!(ahead.with(&of.name, at(3_600)).asked[&of.name], [at(3_600)]);
}

#[test]
fn what_became_of_a_restart_is_roots_word_or_its_silence() {
    let of = tunnel(json!({}));
    let requests = RestartRequests::default().with(&of.name, at(0));
    let answer = |text: &str| RestartAnswer::parse(text);
    let outcome = |answer, now| requests.report(&of.name, answer, now).unwrap().outcome;
    let line =
        |second: i64, word: &str| format!("holdfast-tunnel-restart 1 {} {word}\n", at(second).as_second());
    assert_eq!(outcome(None, at(10)), RestartOutcome::Pending);
    assert_eq!(outcome(None, at(181)), RestartOutcome::Silent);
    assert_eq!(outcome(answer(&line(3, "restarted")), at(10)), RestartOutcome::Restarted);
    assert_eq!(
        outcome(answer(&line(-60, "restarted")), at(10)),
        RestartOutcome::Pending,
        "of an earlier one"
    );
    for (word, is) in [
        ("failed", RestartOutcome::Failed),
        ("left", RestartOutcome::Left),
        ("unlisted", RestartOutcome::Unlisted),
    ] {
        assert_eq!(outcome(answer(&line(3, word)), at(10)), is);
    }
    for bad in [
        "",
        "holdfast-tunnel-restart 2 1 failed",
        "holdfast-tunnel-restart 1 x failed",
        "holdfast-tunnel-restart 1 1 done",
        "holdfast-tunnel-restart 1 1 failed more",
    ] {
        assert_eq!(answer(bad), None, "{bad}");
    }
    assert_eq!(requests.report(&of.name, None, at(86_401)), None, "it is a day old");
    let text = serde_json::to_string(&requests).unwrap();
    assert_eq!(serde_json::from_str::<RestartRequests>(&text).unwrap(), requests);
}
