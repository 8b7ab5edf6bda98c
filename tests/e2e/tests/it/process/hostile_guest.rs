//! Tests of a hostile guest next to two honest ones.
//!
//! Simulator, hub and agent run in the namespace of the host. Each guest is a namespace that is connected to the host's
//! bridge, with an HTTPS client that claimed the guest's token. While the hostile guest attacks, its neighbours make
//! honest calls. The verdict depends on counts: no honest call fails, the agent is the same process, every guest is
//! still managed and running, and nothing of it was changed in Proxmox. How long the neighbours waited is printed next
//! to the same calls without an attack. It does not affect the verdict.
//!
//! | attack | what it does |
//! | --- | --- |
//! | [`attacks::crowd`] | idle connections from many addresses that were not assigned to it |
//! | [`attacks::slow`] | handshakes and bodies byte by byte |
//! | [`attacks::no_tls`] | bytes that are no handshake of TLS 1.3 |
//! | [`odd_http::odd_http`] | requests over TLS that no HTTP client makes |
//! | [`calls::crossing`] | every call with every id that is another's, malformed or huge, and every call without a token |
//! | [`lanes::lanes`] | all the snapshots and backups that it may request, while neighbours have a snapshot and a window |
//! | [`theft::theft`] | stolen tokens and bootstrap tokens, from other addresses and from a spoofed one |
//!
//! Not covered: what the agent's watch of the bridge reports of a spoofed address, since the simulator's guests have other
//! link addresses than these. Not measured: the guest agent itself, whose place the client takes.

mod attacks;
mod calls;
mod client;
mod judge;
mod lanes;
mod net;
mod odd_http;
mod theft;

use e2e::document;
use e2e::wait;
use serde_json::{Value, json};

use self::calls::Theirs;
use self::client::{Guest, PATIENCE, Token, token};
use self::judge::{HEADING, Reported, measured};
use self::net::Net;
use self::theft::Loot;
use super::stand::{self, Stand, well};
use super::test_bridge::within;

/// The guests, by their number in the document.
const HOSTILE: u8 = 1;
/// The hostile guest and its honest neighbours.
const SPEAKING: u8 = 3;
/// All guests, with those whose tokens are stolen.
const ALL: u8 = theft::SPOOFED;

/// The bootstrap token of the guest with this address, once it runs. Before, the agent may still change it, and no
/// guest can have read it.
fn token_of(stand: &Stand, number: u8) -> Value {
    let address = format!("ip={}/24", net::address(number));
    wait::until(&format!("the bootstrap token of guest {number}"), PATIENCE, || {
        let running = std::fs::read(stand.stage.folder().join("sim/run/running.json")).unwrap_or_default();
        let running: Vec<u32> = serde_json::from_slice(&running).unwrap_or_default();
        let all = stand.stage.configurations()?;
        let own = all.iter().find(|(vmid, text)| running.contains(vmid) && text.contains(&address));
        Ok(own.and_then(|(_, text)| token(text)))
    })
    .unwrap()
}

fn apply(stand: &Stand, guests: u8) -> Vec<Value> {
    let ground = stand.stage.ground();
    let wanted: Vec<Value> =
        (1..=guests).map(|number| document::guest(&ground, number, &format!("g{number}"), "acme")).collect();
    let reason = format!("{guests} guests");
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": wanted }), &reason).unwrap();
    wanted
}

/// Three guests that redeemed their bootstrap tokens and said hello.
fn guests(stand: &Stand, net: &Net) -> Vec<Guest> {
    let wanted = apply(stand, SPEAKING);
    let claimed = (1..=SPEAKING).zip(&wanted).map(|(number, wanted)| {
        let token = token_of(stand, number);
        within(net.guest(number), || {
            let guest = Guest::claims(number, wanted["uid"].as_str().unwrap(), &token);
            assert_eq!(guest.says_hello().unwrap().status, 200);
            guest
        })
    });
    let all: Vec<Guest> = claimed.collect();
    stand
        .stage
        .guests_until("three guests", |now| now.len() == wanted.len() && now.iter().all(well))
        .unwrap();
    all
}

/// Two more guests that have not redeemed their bootstrap tokens, which the hostile guest knows.
fn loot(stand: &Stand) -> Loot {
    let wanted = apply(stand, ALL);
    let new = [theft::STOLEN_FROM, theft::SPOOFED];
    let uids = new.map(|number| wanted[usize::from(number) - 1]["uid"].as_str().unwrap().to_owned());
    Loot { uids, bootstrap: new.map(|number| token_of(stand, number)) }
}

/// What is reported of the guest with this number.
fn reported(guests: &[Value], number: u8) -> Option<&Value> {
    guests.iter().find(|guest| guest["name"] == format!("g{number}"))
}

/// Its access is frozen: a condition says so or, while it was being made, the reason for the parked provision.
fn is_frozen(guest: &Value) -> bool {
    let all = guest["conditions"].as_array().into_iter().flatten();
    let says =
        |one: &Value| one["message"].as_str().is_some_and(|text| text.contains("its access is frozen"));
    all.filter(|one| one["code"] == "FROZEN" || one["code"] == "PARKED").any(says)
}

/// Nothing is wrong with any of the first guests.
fn are_well(guests: &[Value]) -> bool {
    (1..=SPEAKING)
        .all(|number| reported(guests, number).is_some_and(|guest| well(guest) && !is_frozen(guest)))
}

/// A neighbour's objects that the hostile guest tries to reach: a snapshot, and the operation that took it.
fn snapshot_of(guest: &Guest) -> Theirs {
    let asked = guest.ask("POST", "/v1/snapshots", Token::Own, r#"{"name":"theirs"}"#).unwrap();
    let operation =
        asked.body["data"]["operation"].as_str().unwrap_or_else(|| panic!("{asked:?}")).to_owned();
    let path = format!("/v1/operations/{operation}?wait=20s");
    wait::until("the snapshot", PATIENCE, || {
        let now = guest.ask("GET", &path, Token::Own, "")?;
        Ok((now.body["data"]["status"] == "done").then_some(()))
    })
    .unwrap();
    Theirs { uid: guest.uid.clone(), operation, snapshot: "theirs".to_owned() }
}

#[test]
fn a_hostile_guest_takes_nothing_from_its_neighbours() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI runs as root");
        println!("left out: network namespaces take root");
        return;
    }
    let net = Net::new(ALL);
    let mut stand = stand::enrolled_in(&net.the_box);
    stand.stage.start_agent(None).unwrap();
    let agent = stand.stage.agent_pid().unwrap();
    let all = guests(&stand, &net);
    let (hostile, neighbours) = all.split_first().unwrap();
    assert_eq!(hostile.number, HOSTILE);
    let theirs = within(net.guest(neighbours[0].number), || snapshot_of(&neighbours[0]));
    let (faults, figures) = lanes::lanes(&net, hostile, neighbours);
    println!("{figures}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    net.takes_addresses(HOSTILE);
    let (before, tasks) = (stand.stage.configurations().unwrap(), stand.stage.tasks().unwrap());

    let peace = |_: &Guest, signals: &judge::Signals| {
        signals.begun();
        Reported::default()
    };
    let sides = (hostile, neighbours);
    let table = [
        measured("none", &net, agent, sides, peace),
        measured("many addresses", &net, agent, sides, attacks::crowd),
        measured("slow", &net, agent, sides, attacks::slow),
        measured("no TLS", &net, agent, sides, attacks::no_tls),
        measured("others' ids", &net, agent, sides, |guest, signals| {
            calls::crossing(guest, signals, &theirs)
        }),
        // Last, since it uses up the guest's requests of a minute.
        measured("odd HTTP", &net, agent, sides, odd_http::odd_http),
    ];
    println!("{HEADING}");
    table.iter().for_each(|row| println!("{}", row.line()));

    let faults: Vec<String> = table.iter().flat_map(judge::Row::faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        stand.stage.agent_gone().unwrap().is_none() && stand.stage.agent_pid() == Some(agent),
        "the agent"
    );
    stand.stage.guests_until("three guests as before", are_well).unwrap();
    assert_eq!(stand.stage.configurations().unwrap(), before, "nothing of any guest was changed");
    assert_eq!(stand.stage.tasks().unwrap(), tasks, "nothing was done to any guest");

    let stolen = theft::theft(&net, hostile, &loot(&stand));
    assert!(stolen.is_empty(), "{}", stolen.join("\n"));
    for neighbour in neighbours {
        let (times, failed) = within(net.guest(neighbour.number), || judge::rounds(neighbour));
        assert!(failed.is_empty(), "guest {} after {} calls: {failed:?}", neighbour.number, times.len());
    }
    let frozen = [HOSTILE, theft::STOLEN_FROM, theft::SPOOFED];
    let as_expected = |now: &[Value], number| {
        reported(now, number).is_some_and(|guest| is_frozen(guest) == frozen.contains(&number))
    };
    stand
        .stage
        .guests_until("these three are frozen", |now| (1..=ALL).all(|number| as_expected(now, number)))
        .unwrap();
    let now = stand.stage.configurations().unwrap();
    let kept = before.iter().filter(|(vmid, text)| now.get(vmid) == Some(text)).count();
    assert_eq!(kept, before.len(), "nothing of the first guests was changed");
}
