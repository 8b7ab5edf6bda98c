//! Pages that change parts of a document, over HTTPS.

use std::collections::BTreeMap;

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::operator::Role;
use reqwest::StatusCode;

use crate::operators::{operator, person};
use crate::pages::{PageAnswer, open, send, set_up, signed_in};
use crate::resources::{Box7, uid};
use crate::world::{Client, World};

/// Text as it was before it was written into HTML.
fn unescaped(text: &str) -> String {
    let signs = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    signs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| unescaped(value))
}

/// The fields of the form that is sent to `action`, as a browser would send them, without its buttons.
pub fn fields(page: &PageAnswer, action: &str) -> BTreeMap<String, String> {
    let begin = format!("method=\"post\" action=\"{action}\"");
    let (_, form) =
        page.html.split_once(&begin).unwrap_or_else(|| panic!("no form for {action}: {}", page.html));
    let (form, _) = form.split_once("</form>").unwrap();
    let mut found = BTreeMap::new();
    for tag in form.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        let name = attribute(tag, "name");
        match (tag.split(' ').next().unwrap(), name) {
            ("input", Some(_)) if tag.contains("type=\"checkbox\"") && !tag.contains(" checked") => {}
            ("input", Some(name)) => {
                found.insert(name, attribute(tag, "value").unwrap_or_default());
            }
            ("textarea", Some(name)) => {
                found.insert(name, unescaped(text.strip_prefix('\n').unwrap_or(text)));
            }
            ("select", Some(name)) => {
                let (_, options) = form.split_once(&format!("<{tag}>")).unwrap();
                let (options, _) = options.split_once("</select>").unwrap();
                let chosen = options.split("<option").find(|option| option.contains(" selected"));
                let chosen = chosen.or_else(|| options.split("<option").nth(1)).unwrap();
                found.insert(name, attribute(chosen, "value").unwrap());
            }
            _ => {}
        }
    }
    found
}

/// Sends a form with some fields changed and a button pressed.
pub async fn press(
    browser: &Client,
    path: &str,
    from: &PageAnswer,
    step: &str,
    changed: &[(&str, &str)],
) -> PageAnswer {
    let mut all = fields(from, path);
    all.insert("step".to_owned(), step.to_owned());
    all.extend(changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    send(browser, path, &all).await
}

/// A host with a document that it carries out, and a browser of an operator.
pub async fn box7() -> (Box7, Client) {
    let box7 = Box7::reported().await;
    operator(&box7.world, "eve", Role::Operator).await;
    set_up(&box7.world, "eve").await;
    let browser = signed_in(&box7.world, "eve").await;
    (box7, browser)
}

fn edit(n: u32) -> String {
    format!("/hosts/box7/guests/{}/edit", uid(n))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_changed_after_its_review() {
    let (box7, browser) = box7().await;
    let path = edit(1);
    let guest = open(&browser, &format!("/hosts/box7/guests/{}", uid(1))).await;
    assert!(guest.html.contains(&format!("href=\"{path}\"")), "{}", guest.html);
    let form = open(&browser, &path).await;
    assert_eq!(form.status, StatusCode::OK, "{}", form.html);
    let shown = fields(&form, &path);
    for (name, value) in
        [("name", "web-1"), ("size.memory_mib", "512"), ("policy", "usual"), ("generation", "1")]
    {
        assert_eq!(shown[name], value, "{name}");
    }
    let wish = [("size.memory_mib", "1024"), ("policy", ""), ("reason", "the shop needs more memory")];
    let review = press(&browser, &path, &form, "review", &wish).await;
    assert_eq!(review.status, StatusCode::OK, "{}", review.html);
    for text in
        ["size.memory_mib", "<del>512</del>", "<ins>1024</ins>", "Less protected", "holdfast sign box7 web-1"]
    {
        assert!(review.html.contains(text), "{text}: {}", review.html);
    }
    assert_eq!(box7.newest().await.generation.number(), 1, "nothing was changed by the review");
    // The form comes back as it was typed.
    let again = press(&browser, &path, &review, "edit", &[]).await;
    assert_eq!(fields(&again, &path)["size.memory_mib"], "1024");
    // Applied twice, as by a second press of the button, it is one change.
    for _ in 0..2 {
        let made = press(&browser, &path, &review, "apply", &[]).await;
        assert_eq!(made.goes_to(), "/hosts/box7/desired/history/2");
    }
    let newest = box7.newest().await;
    assert_eq!((newest.generation.number(), newest.author.as_str()), (2, "eve"));
    assert_eq!(newest.reason.as_str(), "the shop needs more memory");
    let document = box7.newest_document().await;
    assert_eq!(document["guests"][0]["size"]["memory_mib"], 1024);
    assert!(document["guests"][0].get("policy").is_none());
    assert_eq!(document["guests"][0]["volumes"][0]["name"], "db", "what the form does not show stays");
    let version = open(&browser, "/hosts/box7/desired/history/2").await;
    assert!(
        version.html.contains("the shop needs more memory")
            && version.html.contains("This is the newest one")
    );
    let nothing =
        press(&browser, &path, &open(&browser, &path).await, "review", &[("reason", "no change at all")])
            .await;
    assert!(nothing.html.contains("Nothing would change") && !nothing.html.contains("value=\"apply\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_stays_typed_and_is_named_at_its_field() {
    let (box7, browser) = box7().await;
    let path = edit(1);
    let form = open(&browser, &path).await;
    for (name, value, message) in [
        ("size.cores", "0", "0 cores is out of range: 1 to 512 are possible"),
        ("size.cores", "<two>", "write a whole number, in digits alone: &#60;two&#62; is none"),
        ("size.memory_mib", "", "this is missing: fill it in"),
        ("network.address", "10.66.0.12/24", "10.66.0.12 is there twice"),
        ("network.gateway", "192.0.2.1", "is not in the guest&#39;s network"),
        ("golden", "2027.1.1", "golden"),
        ("reason", "x", "a reason is a sentence of 3 to 200 characters"),
    ] {
        let wish = [("name", "web-9"), ("reason", "for the test"), (name, value)];
        let refused = press(&browser, &path, &form, "review", &wish).await;
        assert!(refused.status.is_client_error(), "{name}: {} {}", refused.status, refused.html);
        let id = format!("field-{}", name.replace('.', "-"));
        assert!(refused.html.contains(&format!("<a href=\"#{id}\">")), "{name}: {}", refused.html);
        assert!(refused.html.contains(&format!("id=\"{id}-problem\"")), "{name}: {}", refused.html);
        assert!(
            refused.html.contains("role=\"alert\"") && refused.html.contains(message),
            "{name}: {}",
            refused.html
        );
        let typed = fields(&refused, &path);
        assert_eq!((typed[name].as_str(), typed["name"].as_str()), (value, "web-9"));
    }
    let unnamed =
        press(&browser, &path, &form, "review", &[("policy", "nonsense"), ("reason", "for the test")]).await;
    assert!(
        unnamed.html.contains("none of the document&#39;s policies")
            && unnamed.html.contains("#field-policy")
    );
    assert_eq!(box7.newest().await.generation.number(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_second_sees_both_changes_and_goes_on_from_the_newest() {
    let (box7, browser) = box7().await;
    let path = edit(1);
    let form = open(&browser, &path).await;
    let wish = [("size.memory_mib", "2048"), ("name", "web-9"), ("reason", "mine")];
    let review = press(&browser, &path, &form, "review", &wish).await;
    let theirs = [("size.memory_mib", "1024"), ("size.cores", "4"), ("reason", "theirs")];
    let other = press(&browser, &path, &form, "review", &theirs).await;
    assert_eq!(press(&browser, &path, &other, "apply", &[]).await.goes_to(), "/hosts/box7/desired/history/2");
    let late = press(&browser, &path, &review, "apply", &[]).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED, "{}", late.html);
    for text in
        ["Somebody else was first", "theirs", "<ins>2048</ins>", "<ins>1024</ins>", "yours: look twice"]
    {
        assert!(late.html.contains(text), "{text}: {}", late.html);
    }
    assert_eq!(box7.newest().await.generation.number(), 2);
    let on = press(&browser, &path, &late, "edit", &[]).await;
    let next = fields(&on, &path);
    let of = |name: &str| next[name].as_str();
    assert_eq!(
        (of("generation"), of("size.memory_mib"), of("size.cores"), of("name")),
        ("2", "2048", "4", "web-9")
    );
    let review = press(&browser, &path, &on, "review", &[]).await;
    assert_eq!(
        press(&browser, &path, &review, "apply", &[]).await.goes_to(),
        "/hosts/box7/desired/history/3"
    );
    assert_eq!(box7.newest_document().await["guests"][0]["size"]["cores"], 4, "their change is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_made_changed_and_left_out() {
    let (box7, browser) = box7().await;
    let volume = format!("/hosts/box7/guests/{}/volumes", uid(1));
    let made = [
        (
            "/hosts/box7/guests/new".to_owned(),
            vec![
                ("name", "web-3"),
                ("customer", "acme"),
                ("golden", "2026.11.1"),
                ("network.address", "10.66.0.13/24"),
            ],
        ),
        (
            format!("{volume}/new"),
            vec![
                ("name", "media"),
                ("mount", "/srv/media"),
                ("size_gib", "100"),
                ("kind", "bulk.none"),
                ("kind.bulk.none", "it is a cache"),
            ],
        ),
        (
            "/hosts/box7/storage-targets/new".to_owned(),
            vec![
                ("name", "nas"),
                ("label", "nas"),
                ("backend", "nfs"),
                ("backend.nfs.server", "10.0.0.9"),
                ("backend.nfs.export", "/srv/backup"),
            ],
        ),
        (
            "/hosts/box7/policies/new".to_owned(),
            vec![
                ("name", "often"),
                ("tiers.local.target", "usb2"),
                ("tiers.local.schedule.at", "02:30\r\n14:30"),
            ],
        ),
    ];
    for (path, mut wish) in made {
        wish.push(("reason", "for the test"));
        let form = open(&browser, &path).await;
        assert_eq!(form.status, StatusCode::OK, "{path}: {}", form.html);
        let review = press(&browser, &path, &form, "review", &wish).await;
        assert!(review.html.contains("value=\"apply\""), "{path}: {}", review.html);
        let done = press(&browser, &path, &review, "apply", &[]).await;
        assert!(done.goes_to().starts_with("/hosts/box7/desired/history/"), "{path}");
        // Its name is taken now.
        let twice = press(&browser, &path, &open(&browser, &path).await, "review", &wish).await;
        assert!(twice.status.is_client_error() && twice.html.contains("already"), "{path}: {}", twice.html);
    }
    let document = box7.newest_document().await;
    assert_eq!(document["generation"], 5);
    assert_eq!(document["guests"][2]["name"], "web-3");
    assert_eq!(document["guests"][0]["volumes"][1]["kind"]["bulk"]["none"], "it is a cache");
    assert_eq!(document["storage"][2]["backend"]["nfs"]["export"], "/srv/backup");
    assert_eq!(document["policies"][1]["tiers"]["local"]["schedule"]["at"][1], "14:30");
    for (path, name, value, pointer) in [
        (format!("{volume}/media/edit"), "size_gib", "200", "/guests/0/volumes/1/size_gib"),
        ("/hosts/box7/storage-targets/nas/edit".to_owned(), "label", "grey box", "/storage/2/label"),
        (
            "/hosts/box7/policies/often/edit".to_owned(),
            "tiers.local.retention.keep.daily",
            "14",
            "/policies/1/tiers/local/retention/keep/daily",
        ),
    ] {
        let form = open(&browser, &path).await;
        let review =
            press(&browser, &path, &form, "review", &[(name, value), ("reason", "for the test")]).await;
        let done = press(&browser, &path, &review, "apply", &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{path}: {} {}", review.html, done.html);
        let document = box7.newest_document().await;
        let now = document.pointer(pointer).unwrap();
        assert_eq!(now.as_str().map_or_else(|| now.to_string(), str::to_owned), value, "{path}");
    }
    for path in [
        format!("{volume}/media/delete"),
        "/hosts/box7/storage-targets/nas/delete".to_owned(),
        "/hosts/box7/policies/often/delete".to_owned(),
        format!("/hosts/box7/guests/{}/delete", uid(2)),
    ] {
        let page = open(&browser, &path).await;
        let bad = press(&browser, &path, &page, "review", &[("reason", "")]).await;
        assert!(bad.status == StatusCode::BAD_REQUEST && bad.html.contains("role=\"alert\""), "{path}");
        let wish = [("reason", "not needed"), ("on_host", "leave")];
        let review = press(&browser, &path, &page, "review", &wish).await;
        let done = press(&browser, &path, &review, "apply", &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{path}: {} {}", review.html, done.html);
        assert_eq!(open(&browser, &path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(box7.newest_document().await["generation"], 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_says_who_uses_it_and_what_stays_on_the_host() {
    let (box7, browser) = box7().await;
    let used = open(&browser, "/hosts/box7/policies/usual/delete").await;
    assert!(
        used.html.contains("guest web-1 (policy)") && !used.html.contains("value=\"review\""),
        "{}",
        used.html
    );
    let path = format!("/hosts/box7/guests/{}/delete", uid(1));
    let page = open(&browser, &path).await;
    assert!(
        page.html.contains("VMID 301") && page.html.contains("holdfast sign box7 web-1"),
        "{}",
        page.html
    );
    let refused = press(&browser, &path, &page, "review", &[("reason", "it moves away")]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.html);
    let wish = [("reason", "it moves away"), ("on_host", "leave")];
    let review = press(&browser, &path, &page, "review", &wish).await;
    assert!(review.html.contains("no longer named"), "{}", review.html);
    // Somebody else changes the document in between.
    let other = press(
        &browser,
        &edit(2),
        &open(&browser, &edit(2)).await,
        "review",
        &[("size.cores", "3"), ("reason", "theirs")],
    )
    .await;
    assert_eq!(press(&browser, &edit(2), &other, "apply", &[]).await.status, StatusCode::SEE_OTHER);
    let late = press(&browser, &path, &review, "apply", &[]).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(fields(&late, &path)["generation"], "2");
    let review = press(&browser, &path, &late, "review", &wish).await;
    assert_eq!(
        press(&browser, &path, &review, "apply", &[]).await.goes_to(),
        "/hosts/box7/desired/history/3"
    );
    assert_eq!(box7.newest_document().await["guests"].as_array().unwrap().len(), 1);
}

/// Every page that changes something, and what it would be sent.
fn changing() -> Vec<String> {
    let (guest, volume) =
        (format!("/hosts/box7/guests/{}", uid(1)), format!("/hosts/box7/guests/{}/volumes", uid(1)));
    let parts = ["/hosts/box7/storage-targets", "/hosts/box7/policies"];
    let mut all = vec![
        "/hosts/box7/guests/new".to_owned(),
        format!("{guest}/edit"),
        format!("{guest}/delete"),
        format!("{volume}/new"),
        format!("{volume}/db/edit"),
        format!("{volume}/db/delete"),
        "/hosts/box7/desired/edit".to_owned(),
        "/hosts/box7/desired/rollback".to_owned(),
        "/invites/new".to_owned(),
        format!("/enrollment-requests/{}", uid(9)),
    ];
    all.extend(parts.iter().map(|part| format!("{part}/new")));
    all.extend(
        ["storage-targets/usb1", "policies/usual"]
            .iter()
            .flat_map(|part| ["edit", "delete"].map(|end| format!("/hosts/box7/{part}/{end}"))),
    );
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_make_the_call_sees_no_form_and_changes_nothing() {
    let (box7, browser) = box7().await;
    operator(&box7.world, "vera", Role::Viewer).await;
    let scope = AccessScope::Customer { customer: "acme".parse().unwrap() };
    person(&box7.world, "ann", Role::Customer, scope).await;
    let mut others: Vec<(&str, Client)> = Vec::new();
    for name in ["vera", "ann"] {
        set_up(&box7.world, name).await;
        others.push((name, signed_in(&box7.world, name).await));
    }
    // A session that was answered is known, and its refused forms are not the tries of an address.
    assert_eq!(open(&browser, "/").await.status, StatusCode::OK);
    let anyone = box7.world.anyone();
    for path in changing() {
        let form =
            [("generation", "1"), ("reason", "for the test"), ("step", "apply"), ("key", "k1"), ("to", "1")];
        for (name, other) in &others {
            let csrf = open(other, "/").await.csrf();
            let mut sent = form.to_vec();
            sent.push(("csrf", &csrf));
            for page in [open(other, &path).await, send(other, &path, &sent).await] {
                let is_closed =
                    [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
                assert!(is_closed.contains(&page.status), "{name} {path}: {}", page.status);
                assert!(!page.html.contains("<form class=\"edit\""), "{name} {path}: {}", page.html);
            }
            assert_eq!(send(other, &path, &sent).await.status, StatusCode::FORBIDDEN, "{name} {path}");
        }
        // A form of another site, or of an ended session, has no token of this one.
        for forged in [None, Some(("csrf", "x"))] {
            let sent: Vec<(&str, &str)> = form.into_iter().chain(forged).collect();
            let refused = send(&browser, &path, &sent).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}: {}", refused.html);
        }
    }
    // A few tries of an address without a session are answered.
    for path in changing().iter().take(3) {
        assert_eq!(open(&anyone, path).await.goes_to(), "/sign-in", "{path}");
    }
    assert_eq!(box7.newest().await.generation.number(), 1);
    let own = open(&others[1].1, "/guests").await;
    assert!(!own.html.contains("/edit"), "a customer is not led to forms");
}

/// A person whose scope is one host has forms there, and none elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_ends_at_its_hosts() {
    let world = World::start().await;
    world.enrol("box7").await;
    let scope: AccessScope =
        serde_json::from_value(serde_json::json!({ "kind": "hosts", "labels": { "site": "graz" } })).unwrap();
    person(&world, "sid", Role::Operator, scope).await;
    set_up(&world, "sid").await;
    let browser = signed_in(&world, "sid").await;
    for path in ["/hosts/box7/guests/new", "/hosts/box7/desired", "/hosts/box7/desired/edit"] {
        let page = open(&browser, path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}: {}", page.html);
    }
}
