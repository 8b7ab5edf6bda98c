//! Lists of hosts and guests: filters, pages, and what is left out.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{GuestOnHost, HostView, Page};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Client, World};

fn guest(number: u32, run: &str) -> Value {
    json!({ "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{number:012}"), "name": format!("web-{number}"), "vmid": 5000 + number,
        "customer": if number.is_multiple_of(2) { "acme" } else { "beta" }, "status": "managed", "run": run })
}

/// Three hosts: one with five guests and a guest that is not ours, one with none, one with two.
async fn world() -> World {
    let world = World::start().await;
    let stranger = json!({ "name": "old", "vmid": 100, "status": "foreign", "run": "running" });
    let mut many: Vec<Value> = (1..=5).map(|number| guest(number, "running")).collect();
    many.insert(0, stranger);
    let few = vec![guest(7, "stopped"), guest(6, "running")];
    for (name, guests) in [("box1", many), ("box2", vec![]), ("box3", few)] {
        let host = world.enrol(name).await;
        let mut request = host.full(1, 0);
        request.sections.guests = serde_json::from_value(json!(guests)).unwrap();
        host.check_in(&request, "0s").await.data(StatusCode::OK);
    }
    world
}

/// Every page of a list, by the names of its items.
async fn pages(client: &Client, query: &str) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page: Page<GuestOnHost> =
            client.get(&format!("/v1/guests?{query}{cursor}")).await.data(StatusCode::OK);
        pages.push(page.items.into_iter().map(|item| format!("{}/{}", item.host, item.guest.name)).collect());
        match page.next {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_of_all_hosts_come_in_one_order_whatever_the_page() {
    let world = world().await;
    let admin = world.admin();
    let all = pages(&admin, "limit=500").await.concat();
    assert_eq!(
        all,
        [
            "box1/web-1",
            "box1/web-2",
            "box1/web-3",
            "box1/web-4",
            "box1/web-5",
            "box1/old",
            "box3/web-6",
            "box3/web-7",
        ]
    );
    for limit in 1..=9 {
        let pages = pages(&admin, &format!("limit={limit}")).await;
        assert!(pages.iter().all(|page| page.len() <= limit), "{limit}: {pages:?}");
        assert_eq!(pages.concat(), all, "{limit}");
    }
    assert_eq!(pages(&admin, "limit=2&host=box3").await.concat(), ["box3/web-6", "box3/web-7"]);
    assert_eq!(pages(&admin, "limit=4&host=box1").await.concat(), all[..6]);
    assert_eq!(admin.get::<Value>("/v1/guests?host=box9").await.code(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_narrows_both_lists() {
    let world = world().await;
    let admin = world.admin();
    let some = |filter: &'static str| {
        let admin = admin.clone();
        async move { pages(&admin, &format!("limit=1&filter={filter}")).await.concat() }
    };
    assert_eq!(some("%40run-stopped").await, ["box3/web-7"]);
    assert_eq!(some("%40customer-acme%2B%40host-box1").await, ["box1/web-2", "box1/web-4"]);
    assert_eq!(some("5001%3A5003,-web-2,old").await, ["box1/web-1", "box1/web-3", "box1/old"]);
    assert_eq!(some("never").await, [""; 0]);
    let hosts = |filter: &'static str| {
        let admin = admin.clone();
        async move {
            let page: Page<HostView> =
                admin.get(&format!("/v1/hosts?filter={filter}")).await.data(StatusCode::OK);
            page.items.into_iter().map(|host| host.name.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!(hosts("box3,box1").await, ["box1", "box3"]);
    assert_eq!(hosts("-box1").await, ["box2", "box3"]);
    for wrong in
        ["/v1/guests?filter=%40pool-x", "/v1/hosts?filter=5000", "/v1/guests?filter=", "/v1/guests?cursor=YQ"]
    {
        assert_eq!(admin.get::<Value>(wrong).await.code(), ErrorCode::Range, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_that_come_and_go_between_pages_repeat_and_hide_no_other() {
    let world = world().await;
    let admin = world.admin();
    let first: Page<GuestOnHost> = admin.get("/v1/guests?limit=2").await.data(StatusCode::OK);
    let cursor = first.next.unwrap();
    let box3 = admin.get::<Value>("/v1/hosts/box3").await.data(StatusCode::OK)["host"]["id"].clone();
    let path = format!("/v1/hosts/{}/revoke", box3.as_str().unwrap());
    admin.send::<HostView>(Method::POST, &path, &json!({})).await.data(StatusCode::OK);
    let rest: Page<GuestOnHost> =
        admin.get(&format!("/v1/guests?limit=500&cursor={cursor}")).await.data(StatusCode::OK);
    let names: Vec<&str> = rest.items.iter().map(|item| item.guest.name.as_str()).collect();
    assert_eq!(
        (names, rest.next),
        (vec!["web-3", "web-4", "web-5", "old"], None),
        "a host that was let go is left out"
    );
}
