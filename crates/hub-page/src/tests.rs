//! What must hold of every page.

use holdfast_protocol::operator::{GuestOnHost, HostDetail, HostView, Role};
use serde_json::{Value, json};

use crate::frame::{Frame, Person, Section};
use crate::look::{Look, Theme};
use crate::{assets, events, guest, guests, host, hosts, problem, sign_in, start};

/// A text that would do harm where it is not escaped.
const HOSTILE: &str = "<script src=//evil.example></script>\" onclick=\"x' {{ 7*7 }}";

const ALL: [Section; 4] = [Section::Start, Section::Hosts, Section::Guests, Section::Events];

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn frame() -> Frame {
    Frame {
        section: Section::Start,
        person: Some(Person {
            name: "ada".parse().unwrap(),
            role: Role::Admin,
            csrf: "c0ffee".to_owned(),
            sections: ALL.to_vec(),
        }),
        hub_version: "0.1.0",
        now: "2026-11-21T03:00:00Z".parse().unwrap(),
        look: Look::default(),
    }
}

fn view(name: &str, state: &str) -> HostView {
    read(json!({
        "id": "018f3c1e-6b1f-7c1d-9d0a-000000000065", "name": name, "state": state,
        "seen_at": "2026-11-21T02:59:48Z", "wanted": 7, "held": 6, "agent_version": HOSTILE,
        "degraded": { "since": "2026-11-21T02:41:07Z", "reason": HOSTILE },
        "guests_running": 1, "guests": 2, "attention": 3, "certificate_ends_at": "2026-12-20T00:00:00Z",
        "labels": { "site": "north" }
    }))
}

fn guest_report() -> Value {
    json!({
        "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": HOSTILE, "customer": "acme", "vmid": 140,
        "status": "managed", "run": "stopped", "wanted": "running",
        "conditions": [{ "code": "UNAVAILABLE", "message": HOSTILE }],
        "protection": { "posture": { "is": "attention", "why": [HOSTILE] }, "held": [HOSTILE] }
    })
}

fn detail() -> HostDetail {
    read(json!({
        "host": view("box7", "online"),
        "sections": {
            "guests": [guest_report()],
            "waiting": [{ "effect": HOSTILE, "reason": HOSTILE, "payload": HOSTILE }],
            "conditions": { "conditions": [{
                "code": "BACKUP_LATE", "severity": "critical", "since": "2026-11-21T01:00:00Z",
                "subject": { "kind": "tier", "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "tier": "local" },
                "message": HOSTILE, "remedy": HOSTILE
            }] },
            "host": {
                "node": "pve", "proxmox_version": HOSTILE, "cpus": 8, "memory_bytes": 34359738368u64,
                "memory_used_bytes": 1073741824u64,
                "storages": [{ "name": HOSTILE, "state": "active", "total_bytes": 1000, "used_bytes": 950 }]
            }
        }
    }))
}

fn on_host() -> GuestOnHost {
    let detail = detail();
    read(json!({
        "host_id": detail.host.id, "host": "box7", "host_state": "offline", "seen_at": "2026-11-20T21:00:00Z",
        "guest": guest_report()
    }))
}

fn incident(severity: &str, message: &str) -> Value {
    json!({
        "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000a1", "host": "box7", "subject": "host", "code": "DISK_FULL",
        "severity": severity, "phase": "firing", "phase_since": "2026-11-21T02:00:00Z",
        "since": "2026-11-21T02:00:00Z", "message": message, "remedy": HOSTILE
    })
}

fn event() -> Value {
    json!({ "number": 9, "at": "2026-11-21T02:00:00Z", "kind": "host_enrolled", "message": HOSTILE })
}

fn pages() -> Vec<(&'static str, String)> {
    let frame = frame();
    let hosts_shown = [view("box7", "degraded"), view("box8", "online")];
    let incidents = read::<Vec<_>>(json!([incident("warning", HOSTILE)]));
    let events_shown = read::<Vec<_>>(json!([event()]));
    let guests_shown = [on_host()];
    let fleet = start::Fleet { hosts: &hosts_shown, has_more: true };
    let fleet = start::Start { incidents: &incidents, requests: Some(&[]), fleet: Some(fleet) };
    let list =
        hosts::Hosts { hosts: &hosts_shown, filter: HOSTILE, problem: Some(HOSTILE), next: Some(HOSTILE) };
    let all = guests::Guests { guests: &guests_shown, filter: HOSTILE, problem: None, next: Some(HOSTILE) };
    let log = events::Events { events: &events_shown, next: Some(HOSTILE) };
    vec![
        ("start", start::render(&frame, &fleet).unwrap()),
        ("hosts", hosts::render(&frame, &list).unwrap()),
        ("host", host::render(&frame, &detail()).unwrap()),
        ("guests", guests::render(&frame, &all).unwrap()),
        ("guest", guest::render(&frame, &on_host()).unwrap()),
        ("events", events::render(&frame, &log).unwrap()),
        ("sign in", sign_in::render(&Frame { person: None, ..frame.clone() }, Some(HOSTILE)).unwrap()),
        ("problem", problem::render(&frame, HOSTILE, HOSTILE, HOSTILE).unwrap()),
    ]
}

#[test]
fn no_text_of_a_host_becomes_markup() {
    for (name, html) in pages() {
        assert!(!html.contains("<script src=//"), "{name}");
        assert!(!html.contains("\" onclick="), "{name}");
        assert!(!html.contains("49"), "{name} evaluated a text");
        assert_eq!(html.matches("<script").count(), 1, "{name} has the one script of all pages");
    }
}

#[test]
fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    for (name, html) in pages() {
        for attribute in [" style=", "<style", "javascript:", "src=\"http", "href=\"http", "src=\"//"] {
            assert!(!html.contains(attribute), "{name}: {attribute}");
        }
    }
}

#[test]
fn a_page_has_one_heading_a_language_and_a_way_past_the_navigation() {
    for (name, html) in pages() {
        assert_eq!(html.matches("<h1").count(), 1, "{name}");
        assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\""), "{name}");
        assert!(html.contains("href=\"#content\"") && html.contains("id=\"content\""), "{name}");
    }
}

#[test]
fn a_theme_is_on_the_root_element_and_its_button_is_pressed() {
    for (theme, root) in [
        (Theme::System, "<html lang=\"en\">"),
        (Theme::Light, "<html lang=\"en\" data-theme=\"light\">"),
        (Theme::Dark, "<html lang=\"en\" data-theme=\"dark\">"),
    ] {
        let frame = Frame { look: Look { theme, ..Look::default() }, ..frame() };
        let html = sign_in::render(&frame, None).unwrap();
        let pressed = format!("value=\"{}\" aria-pressed=\"true\"", theme.as_str());
        assert!(html.contains(root) && html.contains(&pressed), "{html}");
        assert_eq!(html.matches("aria-pressed=\"true\"").count(), 1);
    }
}

#[test]
fn each_form_that_changes_something_sends_the_token_of_the_session() {
    for (name, html) in pages() {
        let forms: Vec<&str> =
            html.split("<form").skip(1).filter(|form| form.contains("method=\"post\"")).collect();
        for form in forms {
            let end = form.find("</form>").unwrap();
            let is_sign_in = name == "sign in";
            assert!(is_sign_in || form[..end].contains("name=\"csrf\" value=\"c0ffee\""), "{name}");
        }
    }
}

#[test]
fn files_are_found_by_the_names_that_pages_use() {
    let page = &pages()[0].1;
    for asset in [&assets::STYLE, &assets::SCRIPT, &assets::ICON] {
        assert!(page.contains(&format!("\"{}\"", asset.path())));
        assert!(assets::named(&asset.file_name()).is_some());
    }
    assert!(assets::named("style-0000000000000000.css").is_none());
}

#[test]
fn a_calm_page_says_so_and_one_with_an_alert_does_not() {
    let frame = frame();
    let calm = start::Start {
        incidents: &[],
        requests: Some(&[]),
        fleet: Some(start::Fleet { hosts: &[], has_more: false }),
    };
    let html = start::render(&frame, &calm).unwrap();
    assert!(html.contains("no host waits to be let in") && html.contains("holdfast host invite"));
    let incidents = read::<Vec<_>>(json!([incident("warning", "second"), incident("critical", "first")]));
    let shown = [view("box7", "offline"), view("box8", "never_seen")];
    let html = start::render(
        &frame,
        &start::Start {
            incidents: &incidents,
            fleet: Some(start::Fleet { hosts: &shown, has_more: false }),
            ..calm
        },
    )
    .unwrap();
    assert!(!html.contains("no host waits"));
    for link in html.split("href=\"/hosts?filter=").skip(1) {
        let filter = link.split('"').next().unwrap();
        assert!(filter.parse::<holdfast_protocol::filter::HostFilter>().is_ok(), "{filter}");
    }
    assert!(html.find("first").unwrap() < html.find("second").unwrap(), "the more urgent comes first");
}

#[test]
fn who_may_not_see_hosts_is_led_to_none() {
    let mut frame = frame();
    frame.person.as_mut().unwrap().sections = vec![Section::Start, Section::Guests];
    let incidents = read::<Vec<_>>(json!([incident("warning", "first")]));
    let own = start::Start { incidents: &incidents, requests: None, fleet: None };
    let all = guests::Guests { guests: &[on_host()], filter: "", problem: None, next: None };
    for html in [
        start::render(&frame, &own).unwrap(),
        start::render(&frame, &start::Start { incidents: &[], ..own }).unwrap(),
        guests::render(&frame, &all).unwrap(),
        guest::render(&frame, &on_host()).unwrap(),
    ] {
        let links: Vec<&str> =
            html.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(!links.iter().any(|link| *link == "hosts" || *link == "hosts/box7"), "{links:?}");
        assert!(!html.contains("let in") && !html.contains("holdfast host"), "{html}");
    }
}

#[test]
fn what_a_silent_host_said_is_shown_with_its_age() {
    let html = guest::render(&frame(), &on_host()).unwrap();
    assert!(html.contains("The host is not heard of") && html.contains("6 h ago"));
}

/// As a wall of hosts: the bound of one page over the wire is 100 KiB, compressed.
#[test]
fn a_list_of_three_hundred_guests_is_bounded() {
    let all: Vec<GuestOnHost> = (0..300).map(|_| on_host()).collect();
    let page = guests::Guests { guests: &all, filter: "", problem: None, next: None };
    let html = guests::render(&frame(), &page).unwrap();
    assert!(html.len() < 700 * 1024, "{} bytes", html.len());
}

/// Writes the pages to the folder that `HUB_PAGE_FOLDER` names, to be looked at in a browser.
#[test]
fn pages_are_written_where_a_folder_is_named() {
    let Some(folder) = std::env::var_os("HUB_PAGE_FOLDER").map(std::path::PathBuf::from) else { return };
    for (name, html) in pages() {
        let html = html.replace("/assets/", "assets/");
        std::fs::write(folder.join(format!("{}.html", name.replace(' ', "-"))), html).unwrap();
    }
    let assets = folder.join("assets");
    std::fs::create_dir_all(&assets).unwrap();
    for asset in [&assets::STYLE, &assets::SCRIPT, &assets::ICON] {
        std::fs::write(assets.join(asset.file_name()), asset.bytes).unwrap();
    }
}
