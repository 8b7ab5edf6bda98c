//! Every call by every role and scope, as `docs/authorization.md` says, over HTTP.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::alert::IncidentView;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::customer::{CustomerFields, CustomerView, NewCustomer};
use holdfast_protocol::host_label::LabelChange;
use holdfast_protocol::hub::calls;
use holdfast_protocol::hub::calls::Caller;
use holdfast_protocol::id::{CorrelationId, GuestUid, JobId};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::machine_token::{TokenMade, TokenRequest};
use holdfast_protocol::operator::{HostView, JobSubmit, JobView, Page, Role};
use holdfast_protocol::release::rollout::RolloutView;
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use hubd::store::{By, NewSilence};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::operators::person;
use crate::releases::{program, release};
use crate::world::{Client, Host, MANY_CALLS, Options, World, until};

const PAGE: &str = include_str!("../../../docs/authorization.md");

/// What a call by one caller must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Yes,
    Part,
    Forbidden,
    Hidden,
}

/// A row: the call, what it touches, and a cell for each column.
pub struct Row {
    pub verb: Method,
    pub path: String,
    pub object: String,
    pub cells: Vec<Cell>,
}

pub fn columns() -> Vec<&'static str> {
    let head = PAGE.lines().find(|line| line.starts_with("| call | needs | touches |")).unwrap();
    head.trim_matches('|').split('|').map(str::trim).skip(3).collect()
}

pub fn rows() -> Vec<Row> {
    let table = PAGE.split("## Calls of people and machines").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let (verb, path) = fields[0].trim_matches('`').split_once(' ').unwrap();
            let cells = fields[3..].iter().map(|cell| match *cell {
                "yes" => Cell::Yes,
                "part" => Cell::Part,
                "403" => Cell::Forbidden,
                "404" => Cell::Hidden,
                other => panic!("{other} in {line}"),
            });
            Row {
                verb: verb.parse().unwrap(),
                path: path.to_owned(),
                object: fields[2].to_owned(),
                cells: cells.collect(),
            }
        })
        .collect()
}

/// One of two sides: what lies in the scopes of the test, and what does not.
pub struct Side {
    pub host: &'static str,
    pub guest: GuestUid,
    pub customer: &'static str,
    pub job: JobId,
    pub alert: String,
    pub silence: String,
    pub rollout: u32,
}

fn job_report(job: JobId, blob: &str, guest: GuestUid) -> JobReport {
    JobReport {
        id: job,
        blob: hex::encode(Sha256::digest(blob.as_bytes())),
        state: JobState::Waiting,
        verb: Some(Verb::DestroyGuest),
        guest: Some(guest),
        signers: Vec::new(),
        taken_at: "2026-11-21T14:00:00Z".parse().unwrap(),
        due_at: None,
        ended_at: None,
        operation: None,
        problem: None,
        correlation_id: None,
    }
}

fn by(at: Timestamp) -> By {
    By { operator: "eve".parse().unwrap(), correlation: CorrelationId::new(Uuid::nil()), at, claim: None }
}

/// A host with a guest of a customer, an alert about the guest and a job for it.
pub async fn side(world: &World, number: u128, host: &'static str, customer: &'static str) -> (Side, Host) {
    let agent = world.enrol(host).await;
    let (guest, job) = (GuestUid::new(Uuid::from_u128(number)), JobId::new(Uuid::from_u128(100 + number)));
    let admin = world.admin();
    let change: LabelChange = serde_json::from_value(json!({ "set": { "side": host } })).unwrap();
    admin
        .send::<HostView>(Method::POST, &format!("/v1/hosts/{host}/labels"), &change)
        .await
        .data(StatusCode::OK);
    let submit = JobSubmit { job, blob: "a job".to_owned(), tunnel: None };
    admin
        .send::<JobView>(Method::POST, &format!("/v1/hosts/{host}/jobs"), &submit)
        .await
        .data(StatusCode::CREATED);
    let since = world.clock.now();
    let broken = ReportedCondition::new(
        ConditionCode::GuestBroken,
        Subject::Guest { uid: guest },
        since,
        &format!("the guest of {customer} does not start"),
    );
    let text = json!([{ "uid": guest, "name": format!("web-{customer}"), "customer": customer, "vmid": 100 + number,
        "status": "managed", "run": "running" }]);
    let request = agent.full(1, 0);
    let sections = Sections {
        guests: serde_json::from_value(text).unwrap(),
        conditions: Some(ConditionSet::collect([broken])),
        jobs: Some(vec![job_report(job, "a job", guest)]),
        ..request.sections.clone()
    };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..request };
    agent.check_in(&request, "0s").await.data(StatusCode::OK);
    let alerts: Page<IncidentView> =
        admin.get(&format!("/v1/alerts?filter=all&host={host}")).await.data(StatusCode::OK);
    let alert = serde_json::to_value(&alerts.items[0]).unwrap()["id"].as_str().unwrap().to_owned();
    let silence = NewSilence {
        matchers: vec![
            format!("host={host}").parse().unwrap(),
            format!("customer={customer}").parse().unwrap(),
        ],
        until: since + SignedDuration::from_hours(2),
        comment: "a new disk comes".to_owned().try_into().unwrap(),
    };
    let silence = world.store.add_silence(by(since), silence).await.ok().unwrap().id.to_string();
    let agentd = program(1_000);
    admin.put_release(1, &release(1, 1, &[("agentd", &agentd)])).await;
    admin.put_file(&agentd, 0, agentd.len()).await;
    let waves = json!([{ "hosts": { "named": [host] }, "max_failures": 0, "soak_s": 0, "timeout_s": 3_600 }]);
    let plan = json!({ "version": "2026.11.1", "waves": waves });
    let planned: RolloutView = admin.send(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    // One is not over at a time.
    let abort = format!("/v1/rollouts/{}/abort", planned.number);
    admin.send::<RolloutView>(Method::POST, &abort, &json!({})).await.data(StatusCode::OK);
    (Side { host, guest, customer, job, alert, silence, rollout: planned.number }, agent)
}

pub fn scope(column: &str) -> AccessScope {
    match column.split_once(' ').unwrap().1 {
        "all" => AccessScope::Everything {},
        "h+" | "h-" => AccessScope::Hosts { labels: "side=in7".parse().unwrap() },
        "c+" | "c-" => AccessScope::Customer { customer: "acme".parse().unwrap() },
        other => panic!("{other}"),
    }
}

pub fn role(column: &str) -> Role {
    match &column[..1] {
        "V" => Role::Viewer,
        "O" => Role::Operator,
        "A" => Role::Admin,
        "C" => Role::Customer,
        other => panic!("{other}"),
    }
}

/// A caller with a token of their own.
struct CallerOf {
    client: Client,
    token: String,
}

async fn caller(world: &World, column: &str) -> CallerOf {
    let name = column.replace(' ', "-").replace('+', "p").replace('-', "_");
    let (role, scope) = (role(column), scope(column));
    let client = world.with_token(&person(world, &name, role, scope.clone()).await);
    let token = format!("t_{name}");
    let request = TokenRequest { name: token.parse().unwrap(), role, scope, days: 5.try_into().unwrap() };
    client.send::<TokenMade>(Method::POST, "/v1/tokens", &request).await.data(StatusCode::CREATED);
    CallerOf { client, token }
}

/// Somebody below the admin of this column, or not.
fn below(column: &str) -> &'static str {
    match column.split_once(' ').unwrap().1 {
        "all" => "below_all",
        "h+" => "below_hosts",
        "c+" => "below_customer",
        _ => "above",
    }
}

fn path(row: &Row, side: &Side, column: &str, caller: &CallerOf) -> String {
    let id = Uuid::from_u128(0xff).to_string();
    let name = match row.object.as_str() {
        "operator" => below(column),
        "token" if column.ends_with('-') => "t_above",
        "token" => caller.token.as_str(),
        _ => "no-such-receiver",
    };
    let named = match row.object.as_str() {
        "alert" => side.alert.clone(),
        "silence" => side.silence.clone(),
        _ => id.clone(),
    };
    row.path
        .replace("{host}", side.host)
        .replace("{guest}", &side.guest.to_string())
        .replace("{customer}", side.customer)
        .replace("{job}", &side.job.to_string())
        .replace("{id}", &named)
        .replace("{name}", name)
        .replace("{number}", &side.rollout.to_string())
        .replace("{version}", "2026.11.1")
        .replace("{sha256}", &"a".repeat(64))
        .replace("{tunnel}", "t1")
        .replace("{order}", &id)
}

/// The body is none that any call takes, so what is served changes nothing: it is too long or no JSON.
async fn send(client: &Client, verb: &Method, path: &str) -> (StatusCode, String, String) {
    let request = client.http.request(verb.clone(), format!("{}{path}", client.url));
    let request = request.headers(client.headers.clone()).header("if-match", "\"1\"");
    let request = if *verb == Method::GET { request } else { request.body("{".repeat(1_100)) };
    let response = request.send().await.unwrap();
    let (status, bytes) = (response.status(), response.bytes().await.unwrap());
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_decided_as_the_page_says() {
    let world = World::with(Options { operator_calls: MANY_CALLS, ..Options::default() }).await;
    let (inside, _in7) = side(&world, 1, "in7", "acme").await;
    let (outside, _out7) = side(&world, 2, "out7", "beta").await;
    for customer in ["acme", "beta"] {
        let new = NewCustomer { name: customer.parse().unwrap(), fields: CustomerFields::default() };
        world
            .admin()
            .send::<CustomerView>(Method::POST, "/v1/customers", &new)
            .await
            .data(StatusCode::CREATED);
    }
    for (name, role, scope) in [
        ("below_all", Role::Admin, "A all"),
        ("below_hosts", Role::Viewer, "V h+"),
        ("below_customer", Role::Customer, "C c+"),
        ("above", Role::Admin, "A all"),
    ] {
        person(&world, name, role, self::scope(scope)).await;
    }
    let above = TokenRequest {
        name: "t_above".parse().unwrap(),
        role: Role::Admin,
        scope: AccessScope::Everything {},
        days: 5.try_into().unwrap(),
    };
    world.admin().send::<TokenMade>(Method::POST, "/v1/tokens", &above).await.data(StatusCode::CREATED);
    let (columns, rows) = (columns(), rows());
    let mut callers = BTreeMap::new();
    for column in &columns {
        callers.insert(*column, caller(&world, column).await);
    }
    let mut wrong = Vec::new();
    for row in &rows {
        let (status, code, _) =
            send(&world.anyone(), &row.verb, &path(row, &inside, "V all", &callers["V all"])).await;
        if (status, code.as_str()) != (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED") {
            wrong.push(format!("{} {}: {status} {code} without a token", row.verb, row.path));
        }
        assert_eq!(row.cells.len(), columns.len(), "{}", row.path);
        for (column, cell) in columns.iter().zip(&row.cells) {
            let caller = &callers[column];
            let side = if column.ends_with('-') { &outside } else { &inside };
            let at = path(row, side, column, caller);
            let (status, code, message) = send(&caller.client, &row.verb, &at).await;
            let is_hidden =
                status == StatusCode::NOT_FOUND && message == format!("there is no such {} here", row.object);
            let found = match status {
                StatusCode::FORBIDDEN if code == "FORBIDDEN" => Cell::Forbidden,
                _ if is_hidden => Cell::Hidden,
                StatusCode::UNAUTHORIZED | StatusCode::INTERNAL_SERVER_ERROR => {
                    panic!("{column} {at}: {status}")
                }
                _ => Cell::Yes,
            };
            let wanted = if *cell == Cell::Part { Cell::Yes } else { *cell };
            if found != wanted {
                wrong.push(format!("{column}: {} {at}: {status} {code} {message:?}, not {cell:?}", row.verb));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // Nothing was changed by all that.
    until("both hosts are there", || async {
        let hosts: Page<HostView> = world.admin().get("/v1/hosts").await.data(StatusCode::OK);
        hosts.items.len() == 2
    })
    .await;
}

#[test]
fn the_page_has_every_call_and_every_kind_of_cell() {
    let described: BTreeSet<(String, String)> =
        rows().into_iter().map(|row| (row.verb.to_string(), row.path)).collect();
    let stated: BTreeSet<(String, String)> = calls()
        .filter(|call| matches!(call.caller, Caller::Operator(_)))
        .map(|call| (call.method.verb().to_owned(), call.path.to_owned()))
        .collect();
    assert_eq!(described, stated);
    let cells: Vec<Cell> = rows().into_iter().flat_map(|row| row.cells).collect();
    for cell in [Cell::Yes, Cell::Part, Cell::Forbidden, Cell::Hidden] {
        assert!(cells.contains(&cell), "{cell:?}");
    }
}
