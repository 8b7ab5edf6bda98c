//! What must hold of every page.

use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::operator::{GuestOnHost, HostDetail, HostView, Role};
use holdfast_protocol::usage::UsageSeries;
use holdfast_protocol::work_order::{WorkOrderDetail, WorkOrderView};
use serde_json::{Value, json};

use crate::chart::ChartSpan;
use crate::frame::{Frame, Person, Section};
use crate::look::{Look, Theme};
use crate::sheet::Notice;
use crate::{
    alerts, assets, audit, customers, events, guest, guests, host, hosts, images, jobs, operators, orders,
    own, parts, problem, releases, rollouts, settings, sign_in, silences, start, storage, tokens,
};

/// A text that would do harm where it is not escaped.
const HOSTILE: &str = "<script src=//evil.example></script>\" onclick=\"x' {{ 7*7 }}";

const ALL: [Section; 6] =
    [Section::Start, Section::Hosts, Section::Guests, Section::Jobs, Section::Events, Section::Settings];

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
        live: Some(17),
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

fn guest_job() -> holdfast_protocol::objection::GuestJobView {
    read(json!({
        "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000b1", "host_id": "018f3c1e-6b1f-7c1d-9d0a-000000000065",
        "host": "box7", "guest": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "customer": "acme", "verb": "destroy_guest",
        "state": "waiting", "taken_at": "2026-11-21T02:00:00Z", "due_at": "2026-11-22T02:00:00Z",
        "objections": [{ "by": "ann", "reason": "it is still in use", "at": "2026-11-21T02:10:00Z" }]
    }))
}

fn job_detail() -> holdfast_protocol::operator::JobDetail {
    read(json!({
        "job": { "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000b1", "by": "ada", "submitted_at": "2026-11-21T01:00:00Z",
            "bytes": 7, "queue_state": "queued" },
        "blob": HOSTILE
    }))
}

/// The sheets: lists, pages of one thing, forms.
fn sheets(frame: &Frame) -> Vec<(&'static str, String)> {
    let detail = detail();
    let waiting = detail.sections.waiting.clone().unwrap();
    let waiting = [jobs::WaitingOn { host: "box7".to_owned(), entries: &waiting }];
    let guest_jobs = [guest_job()];
    let all = jobs::Jobs {
        waiting: Some(&waiting),
        has_more_waiting: true,
        jobs: &guest_jobs,
        next: Some(HOSTILE),
    };
    let incidents = read::<Vec<_>>(json!([incident("warning", HOSTILE)]));
    let asked = alerts::AlertFilter { host: HOSTILE.to_owned(), ..Default::default() };
    let list = alerts::Alerts {
        incidents: &incidents,
        asked: &asked,
        next: Some(HOSTILE),
        notice: Notice::Done(HOSTILE),
    };
    let alert = read(json!({
        "incident": incident("critical", HOSTILE), "receivers": [{ "receiver": "ops", "sent": "nothing" }],
        "log": { "items": [{ "number": 1, "at": "2026-11-21T02:00:00Z", "kind": "fired", "text": HOSTILE }] }
    }));
    let silence = read(json!([{ "id": 3, "matchers": [HOSTILE], "from": "2026-11-21T02:00:00Z",
        "until": "2026-11-22T02:00:00Z", "by": "ada", "comment": HOSTILE }]));
    let silence: Vec<holdfast_protocol::alert::SilenceView> = silence;
    let typed_silence = silences::TypedSilence { matchers: HOSTILE.to_owned(), ..Default::default() };
    let evidence = read(json!({
        "heads": [{ "number": 9, "chain": "ab", "at": "2026-11-21T02:00:00Z" }],
        "breaks": [{ "at": "2026-11-21T02:00:00Z", "kept": { "number": 9, "chain": "ab" },
            "found": { "number": 9, "chain": "cd" } }]
    }));
    let record = json!({ "line": { "number": 1, "at_us": 7, "action": HOSTILE, "detail": HOSTILE, "chain": "ab" }, "before": "" });
    let guest_audit = read(json!({ "records": [record] }));
    let customer: holdfast_protocol::customer::CustomerView = read(json!({
        "name": "acme", "origin": "registered", "fields": { "display_name": HOSTILE, "notes": HOSTILE }, "version": 1,
        "guests": 1
    }));
    let typed_customer = customers::TypedCustomer { name: HOSTILE.to_owned(), ..Default::default() };
    let guests = [on_host()];
    let person = read::<Vec<_>>(json!([{ "name": "eve", "role": "viewer" }]));
    let typed =
        operators::TypedGrant { name: HOSTILE.to_owned(), scope: HOSTILE.to_owned(), ..Default::default() };
    let token = read::<Vec<_>>(
        json!([{ "name": "ci", "maker": "ada", "role": "viewer", "created_at": "2026-11-21T02:00:00Z" }]),
    );
    let receiver =
        read::<Vec<_>>(json!([{ "name": "ops", "kind": "smtp", "waiting": 1, "failure": HOSTILE }]));
    let tabs = settings::SettingsPage::ALL;
    let own = own::Own { guests: &guests, has_more: true, incidents: &incidents, jobs: &guest_jobs };
    let authority = settings::AuthorityFacts { serving: HOSTILE.to_owned(), change: None, former: None };
    let hosts = [view("box7", "online")];
    vec![
        ("jobs", jobs::render(frame, &all).unwrap()),
        ("job", jobs::one(frame, "box7", &job_detail(), Notice::Nothing).unwrap()),
        ("jobs of a host", jobs::of_host(frame, "box7", &[job_detail().job], None).unwrap()),
        ("alerts", alerts::render(frame, &list).unwrap()),
        ("alert", alerts::one(frame, &alert, Notice::Nothing).unwrap()),
        ("silences", silences::render(frame, &silence, &typed_silence, Notice::Refused(HOSTILE)).unwrap()),
        ("audit of a host", audit::heads(frame, "box7", &evidence).unwrap()),
        ("audit of a guest", audit::of_guest(frame, "box7", "g", &guest_audit).unwrap()),
        ("images", images::render(frame, std::slice::from_ref(&detail), Some(&[]), None).unwrap()),
        ("customers", {
            let all = [customer.clone()];
            customers::render(frame, &all, None, &typed_customer, Notice::Refused(HOSTILE)).unwrap()
        }),
        ("customer", customers::one(frame, &customer, &guests, true).unwrap()),
        ("operators", operators::render(frame, &tabs, &person, &typed, Notice::Refused(HOSTILE)).unwrap()),
        ("tokens", tokens::render(frame, &tabs, &token, &typed, Notice::Nothing).unwrap()),
        ("channels", settings::receivers(frame, &tabs, &receiver, Notice::Done(HOSTILE)).unwrap()),
        ("certificates", settings::certificates(frame, &tabs, &authority, &hosts, None).unwrap()),
        ("settings", settings::index(frame, &tabs).unwrap()),
        ("own", own::render(frame, &own).unwrap()),
    ]
}

/// Sheets of storage, policies, releases and rollouts.
fn part_sheets(frame: &Frame) -> Vec<(&'static str, String)> {
    let at = "2026-11-21T02:00:00Z";
    let target = json!({ "name": "usb-1", "backend": HOSTILE, "role": "local-backup", "class": "slow",
        "status": "dropped", "since": at, "reason": HOSTILE });
    let mut host = detail();
    host.sections.storage = Some(read(json!([target])));
    let view: holdfast_protocol::resource::view::PartView = read(json!({
        "kind": "storage_target", "name": "usb-1", "state": "differs",
        "current": { "reported_at": at, "age_s": 1, "value": target },
        "differences": [{ "path": HOSTILE, "desired": HOSTILE }],
        "used_by": [{ "of": HOSTILE, "field": HOSTILE }]
    }));
    let (kind, hash) = (holdfast_protocol::resource::PartKind::StorageTarget, "ab".repeat(32));
    let listed = [parts::OnHost { host: "box7".to_owned(), view: view.clone() }];
    let release = read::<Vec<_>>(json!([{
        "version": "2026.11.1", "manifest_sha256": hash, "issued_at": at, "expires_at": "2027-11-21T02:00:00Z",
        "signatures": 2, "by": "ada", "put_at": at,
        "files": [{ "kind": "agent", "name": "agentd",
            "artifact": { "sha256": hash, "size_bytes": 5, "received_bytes": 0, "state": "missing" } }]
    }]));
    let rollout: holdfast_protocol::release::rollout::RolloutView = read(json!({
        "number": 1, "version": "2026.11.1", "state": "held", "reason": HOSTILE, "by": "ada", "at": at,
        "open": { "number": 1, "opened_at": at },
        "waves": [{ "hosts": [{ "host": "box7", "state": "failed", "why": HOSTILE, "wait": { "why": "host" } }],
            "max_failures": 0, "soak_s": 60, "timeout_s": 60 }]
    }));
    vec![
        ("storage", storage::render(frame, std::slice::from_ref(&host), Some(HOSTILE)).unwrap()),
        ("targets", parts::list(frame, kind, Some("box7"), &listed, None).unwrap()),
        ("target", parts::one(frame, "box7", &view, Some(HOSTILE)).unwrap()),
        ("releases", releases::render(frame, &release, std::slice::from_ref(&rollout)).unwrap()),
        ("rollout", rollouts::one(frame, &rollout, Notice::Refused(HOSTILE)).unwrap()),
    ]
}

fn usage() -> UsageSeries {
    let points: Vec<Value> = (0..60)
        .map(|minute| json!({ "at": format!("2026-11-21T02:{minute:02}:00Z"), "mean": minute * 10, "max": minute * 15 }))
        .collect();
    read(json!({ "span": "2h", "step_s": 60, "metrics": { "cpu_permille": points } }))
}

fn work_orders() -> Vec<WorkOrderView> {
    read(json!([{
        "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000b1", "act": { "kind": "refresh" }, "state": "running", "by": "ada",
        "created_at": "2026-11-21T02:50:00Z", "expires_at": "2026-11-21T03:50:00Z",
        "report": {
            "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000b1", "state": "running", "claimed_at": "2026-11-21T02:50:02Z",
            "phases": [{ "name": "look", "status": "done", "attempts": 1, "took_ms": 1200 },
                { "name": HOSTILE, "status": "intended", "attempts": 1 }],
            "log": [HOSTILE]
        }
    }]))
}

fn audit() -> GuestAuditView {
    let line = |number, action: &str| {
        json!({ "line": { "number": number, "at_us": 1763690000000000i64, "action": action,
        "detail": HOSTILE, "chain": "00" }, "before": "00" })
    };
    read(json!({ "records": [line(2, "operation_opened"), line(3, "step_intended")] }))
}

fn host_shown<'a>(
    detail: &'a HostDetail,
    usage: &'a UsageSeries,
    orders: &'a [WorkOrderView],
) -> host::Host<'a> {
    host::Host { detail, usage: Some((ChartSpan::Hour, usage)), hourly: Some(usage), orders, once: "0-0" }
}

fn guest_shown<'a>(
    one: &'a GuestOnHost,
    usage: &'a UsageSeries,
    audit: &'a GuestAuditView,
    orders: &'a [WorkOrderView],
) -> guest::Guest<'a> {
    let (usage, certificate) = (Some((ChartSpan::Hour, usage)), guest::Certificate::Kept);
    guest::Guest { one, usage, audit: Some(audit), orders, once: "0-0", certificate }
}

fn pages() -> Vec<(&'static str, String)> {
    let frame = frame();
    let mut pages = first_pages(&frame);
    pages.extend(sheets(&frame));
    pages.extend(part_sheets(&frame));
    pages
}

fn first_pages(frame: &Frame) -> Vec<(&'static str, String)> {
    let hosts_shown = [view("box7", "degraded"), view("box8", "online")];
    let incidents = read::<Vec<_>>(json!([incident("warning", HOSTILE)]));
    let events_shown = read::<Vec<_>>(json!([event()]));
    let guests_shown = [on_host()];
    let fleet = start::Fleet { hosts: &hosts_shown, has_more: true };
    let fleet = start::Start { incidents: &incidents, requests: Some(&[]), fleet: Some(fleet), first: None };
    let list =
        hosts::Hosts { hosts: &hosts_shown, filter: HOSTILE, problem: Some(HOSTILE), next: Some(HOSTILE) };
    let all = guests::Guests { guests: &guests_shown, filter: HOSTILE, problem: None, next: Some(HOSTILE) };
    let log = events::Events {
        events: &events_shown,
        text: HOSTILE,
        host: HOSTILE,
        next: Some(HOSTILE),
        notice: Notice::Refused(HOSTILE),
    };
    let mut all_pages = crate::form_page_tests::pages(frame, HOSTILE);
    all_pages.extend([
        ("start", start::render(frame, &fleet).unwrap()),
        ("hosts", hosts::render(frame, &list).unwrap()),
        ("host", host::render(frame, &host_shown(&detail(), &usage(), &work_orders())).unwrap()),
        ("guests", guests::render(frame, &all).unwrap()),
        (
            "guest",
            guest::render(frame, &guest_shown(&on_host(), &usage(), &audit(), &work_orders())).unwrap(),
        ),
        (
            "order",
            orders::render(frame, "box7", &WorkOrderDetail { order: work_orders().remove(0), text: None })
                .unwrap(),
        ),
        ("events", events::render(frame, &log).unwrap()),
        (
            "sign in",
            sign_in::render(
                &Frame { person: None, ..frame.clone() },
                &sign_in::SignInWays { provider: Some(HOSTILE), problem: Some(HOSTILE) },
            )
            .unwrap(),
        ),
        ("problem", problem::render(frame, HOSTILE, HOSTILE, HOSTILE).unwrap()),
    ]);
    all_pages
}

#[test]
fn no_text_of_a_host_becomes_markup() {
    for (name, html) in pages() {
        assert!(!html.contains("<script src=//"), "{name}");
        assert!(!html.contains("\" onclick="), "{name}");
        assert!(!html.contains("&#39; 49"), "{name} evaluated a text");
        assert_eq!(html.matches("<script").count(), 2, "{name} has the two scripts of live pages");
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
        let html = sign_in::render(&frame, &sign_in::SignInWays::default()).unwrap();
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
    let all = pages();
    let page = &all[0].1;
    for asset in [&assets::STYLE, &assets::SCRIPT, &assets::LIVE, &assets::ICON] {
        assert!(page.contains(&format!("\"{}\"", asset.path())));
        assert!(assets::named(&asset.file_name()).is_some());
    }
    assert!(assets::named("style-0000000000000000.css").is_none());
}

/// A name is said once, so that a label has one field and a heading one part.
#[test]
fn each_id_of_a_page_is_of_one_element() {
    for (name, html) in pages() {
        let mut ids: Vec<&str> =
            html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: {ids:?}");
        for label in html.split("<label for=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(ids.contains(&label), "{name}: no field is called {label}");
        }
    }
}

#[test]
fn one_of_several_is_signed_by_its_number_and_one_alone_without() {
    let detail = detail();
    let one = detail.sections.waiting.unwrap();
    let two = [one.clone(), one.clone()].concat();
    let line = |entries: &[holdfast_protocol::report::WaitingForSignature]| {
        let waiting = [jobs::WaitingOn { host: "box7".to_owned(), entries }];
        let all = jobs::Jobs { waiting: Some(&waiting), has_more_waiting: false, jobs: &[], next: None };
        jobs::render(&frame(), &all).unwrap()
    };
    assert!(line(&one).contains("<code>holdfast sign box7</code>"));
    let html = line(&two);
    assert!(
        html.contains("<code>holdfast sign box7 1</code>")
            && html.contains("<code>holdfast sign box7 2</code>")
    );
    assert!(html.contains("class=\"qr\""));
}

#[test]
fn a_viewer_is_shown_no_form_that_changes_something() {
    let mut frame = frame();
    frame.person.as_mut().unwrap().role = Role::Viewer;
    for (name, html) in sheets(&frame).into_iter().chain(part_sheets(&frame)) {
        // Tokens are each one's own, and viewers may object in a customer's place.
        if matches!(name, "tokens" | "operators" | "jobs" | "own") {
            continue;
        }
        let forms = html.matches("method=\"post\"").count();
        assert_eq!(forms, 2, "{name}: only the way out and the theme");
    }
}

#[test]
fn a_calm_page_says_so_and_one_with_an_alert_does_not() {
    let frame = frame();
    let calm = start::Start {
        incidents: &[],
        requests: Some(&[]),
        fleet: Some(start::Fleet { hosts: &[], has_more: false }),
        first: None,
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
    let own = start::Start { incidents: &incidents, requests: None, fleet: None, first: None };
    let all = guests::Guests { guests: &[on_host()], filter: "", problem: None, next: None };
    for html in [
        start::render(&frame, &own).unwrap(),
        start::render(&frame, &start::Start { incidents: &[], ..own }).unwrap(),
        guests::render(&frame, &all).unwrap(),
        guest::render(&frame, &guest_shown(&on_host(), &usage(), &audit(), &work_orders())).unwrap(),
    ] {
        let links: Vec<&str> =
            html.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(!links.iter().any(|link| *link == "hosts" || *link == "hosts/box7"), "{links:?}");
        assert!(!html.contains("let in") && !html.contains("holdfast host"), "{html}");
    }
}

#[test]
fn what_a_silent_host_said_is_shown_with_its_age() {
    let html = guest::render(&frame(), &guest_shown(&on_host(), &usage(), &audit(), &[])).unwrap();
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
    for asset in [&assets::STYLE, &assets::SCRIPT, &assets::LIVE, &assets::ICON] {
        std::fs::write(assets.join(asset.file_name()), asset.bytes).unwrap();
    }
}
