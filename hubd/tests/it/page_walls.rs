//! Every page by every role and scope, as `docs/authorization.md` says.

use holdfast_protocol::customer::{CustomerFields, CustomerView, NewCustomer};
use reqwest::{Method, StatusCode};
use uuid::Uuid;

use crate::authorization::{Cell, Side, columns, role, rows, scope, side};
use crate::operators::person;
use crate::pages::{browser_of, for_browsers, open, send};
use crate::world::{Client, World};

/// The pages that are no sheets.
const FIRST: [&str; 5] = ["/", "/hosts", "/hosts/{host}", "/guests", "/hosts/{host}/guests/{guest}"];

/// Callers of every role, and of every kind of scope.
const COLUMNS: [&str; 9] = ["V all", "V h+", "V h-", "V c+", "V c-", "O h+", "A all", "C c+", "C c-"];

/// The call that a page stands for.
fn call_of(page: &str) -> String {
    match page {
        "/" => "/v1/alerts".to_owned(),
        "/audit" | "/certificates" | "/images" | "/policies" | "/storage" => "/v1/hosts".to_owned(),
        "/settings" => "/v1/whoami".to_owned(),
        "/hosts/{host}/guests/{guest}" => "/v1/hosts/{host}/guests/{guest}/audit".to_owned(),
        page => format!("/v1{}", page.trim_end_matches("/file")),
    }
}

fn at(page: &str, side: &Side) -> String {
    page.replace("{host}", side.host)
        .replace("{guest}", &side.guest.to_string())
        .replace("{customer}", side.customer)
        .replace("{job}", &side.job.to_string())
        .replace("{id}", &side.alert)
        .replace("{number}", &side.rollout.to_string())
        .replace("{target}", "usb-1")
        .replace("{policy}", "nightly")
}

async fn browser(world: &World, column: &str) -> Client {
    let name = column.to_lowercase().replace(' ', "-").replace('+', "p").replace("--", "-m");
    let name = if column.ends_with('-') { name.trim_end_matches('-').to_owned() + "m" } else { name };
    person(world, &name, role(column), scope(column)).await;
    browser_of(world, &name).await
}

/// What is of the other side alone. A customer reads none of it on any page, whatever the address is.
fn secrets(side: &Side) -> [String; 4] {
    [
        side.guest.to_string(),
        format!("web-{}", side.customer),
        format!("the guest of {} does not start", side.customer),
        format!("on {}", side.host),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_decided_like_its_call_and_shows_nothing_of_others() {
    let world = World::with(for_browsers()).await;
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
    let (all_columns, rows) = (columns(), rows());
    let pages: Vec<&str> = FIRST.into_iter().chain(hubd::api::page_paths()).collect();
    let mut wrong = Vec::new();
    for column in COLUMNS {
        let browser = browser(&world, column).await;
        let place = all_columns.iter().position(|one| *one == column).unwrap();
        let of_column = if column.ends_with('-') { &outside } else { &inside };
        for page in &pages {
            let call = call_of(page);
            let row = rows.iter().find(|row| row.verb == Method::GET && row.path == call);
            let Some(row) = row else { panic!("{page} stands for {call}, which is no call") };
            let answer = open(&browser, &at(page, of_column)).await;
            // A thing that is not there is 404 for who may see it, too.
            let is_good = match row.cells[place] {
                Cell::Yes | Cell::Part => matches!(answer.status, StatusCode::OK | StatusCode::NOT_FOUND),
                Cell::Forbidden => answer.status == StatusCode::FORBIDDEN,
                Cell::Hidden => answer.status == StatusCode::NOT_FOUND,
            };
            if !is_good {
                wrong.push(format!("{column}: {page}: {}, not {:?}", answer.status, row.cells[place]));
            }
            if matches!(column, "C c+" | "C c-") {
                // The scope of both is acme. Pages of the other side are tried in any case.
                for address in [at(page, &inside), at(page, &outside)] {
                    // The form of the theme leads back to the address that was asked for.
                    let html =
                        open(&browser, &address).await.html.replace(&format!("value=\"{address}\""), "");
                    let shown = secrets(&outside).into_iter().filter(|secret| html.contains(secret));
                    wrong.extend(shown.map(|secret| format!("{column}: {address} shows {secret}")));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_shown_what_is_theirs_and_led_nowhere_else() {
    let world = World::with(for_browsers()).await;
    let (own, _in7) = side(&world, 1, "in7", "acme").await;
    side(&world, 2, "out7", "beta").await;
    let browser = browser(&world, "C c+").await;
    let start = open(&browser, "/").await;
    assert_eq!(start.status, StatusCode::OK);
    let guest = format!("/hosts/in7/guests/{}", own.guest);
    let (certificate, audit) = (format!("{guest}/restore-certificate"), format!("{guest}/audit"));
    for text in
        ["Your guests", "web-acme", guest.as_str(), &certificate, &audit, "the guest of acme does not start"]
    {
        assert!(start.html.contains(text), "{text}: {}", start.html);
    }
    let links =
        start.html.split("href=\"/").skip(1).map(|rest| format!("/{}", rest.split('"').next().unwrap()));
    for link in links.filter(|link| !link.starts_with("/assets/") && *link != certificate) {
        assert_eq!(open(&browser, &link).await.status, StatusCode::OK, "{link}");
    }
    let page = open(&browser, &guest).await;
    assert!(page.html.contains("web-acme") && !page.html.contains("href=\"/hosts\""), "{}", page.html);
    // The certificate is not there yet, and the page says so.
    let missing = open(&browser, &certificate).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert!(missing.html.contains("no such restore certificate"), "{}", missing.html);

    // A job that waits is on the first page, and they object to it there; to another's they cannot.
    let csrf = start.csrf();
    let reason = [("csrf", csrf.as_str()), ("reason", "it is still in use")];
    let path = format!("/jobs/{}/objection", own.job);
    assert!(start.html.contains(&path), "{}", start.html);
    let forged = send(&browser, &path, &[("csrf", "x"), ("reason", "it is still in use")]).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    assert!(!open(&browser, "/jobs").await.html.contains("still in use"), "a forged form changed nothing");
    assert_eq!(send(&browser, &path, &reason).await.goes_to(), "/jobs");
    assert!(
        open(&browser, "/jobs").await.html.contains("objects (now): it is still in use"),
        "{}",
        open(&browser, "/jobs").await.html
    );
    let other = format!("/jobs/{}/objection", Uuid::from_u128(102));
    assert_eq!(send(&browser, &other, &reason).await.status, StatusCode::NOT_FOUND);
}
