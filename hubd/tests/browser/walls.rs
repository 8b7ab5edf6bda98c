//! What a customer gets of other customers by any address: nothing.

use reqwest::StatusCode;
use serde_json::json;

use crate::fleet::{Fleet, guests_of_others, uid};
use crate::site::Site;
use crate::views::follow;

#[tokio::test(flavor = "multi_thread")]
async fn no_address_of_an_admin_shows_a_customer_another_ones_guest() {
    let Some(site) = Site::start().await else { return };
    let _fleet = Fleet::start(&site).await;
    let (admin, _) = site.signed_in("ada", "admin", json!({ "kind": "everything" })).await;
    let scope = json!({ "kind": "customer", "customer": "acme" });
    let (customer, cookie) = site.signed_in("carl", "customer", scope).await;
    let others = guests_of_others("acme");
    let all: Vec<String> = follow(&admin).await.into_values().flatten().collect();
    assert!(
        all.iter().any(|path| path.ends_with(&uid(3).to_string())),
        "an admin has links to all guests: {all:?}"
    );
    let mut refused = 0;
    for path in &all {
        let request = customer.http.get(format!("{}{path}", customer.url));
        let answer = request.headers(customer.headers.clone()).send().await.unwrap();
        refused += u32::from(!answer.status().is_success());
        let text = answer.text().await.unwrap();
        // The page repeats its own address, as its form comes back to it.
        let text = text.replace(path.as_str(), "");
        for name in &others {
            assert!(
                !text.contains(&format!(">{name}<")) && !text.contains(&format!(" {name} ")),
                "{path}: {name}"
            );
        }
    }
    assert!(refused > 0, "nothing at all was refused: {all:?}");

    // In the browser: one's own guests are listed, and another's is refused by its address.
    let tab = site.tab_of(&cookie);
    tab.goto("/guests");
    assert!(tab.contents().contains("web-shop") && !tab.contents().contains("ledger"), "{}", tab.contents());
    for (host, number) in [("fra-1", 3), ("fra-2", 4), ("hel-2", 10)] {
        let path = format!("/hosts/{host}/guests/{}", uid(number));
        tab.goto(&path);
        let name = others.iter().find(|name| tab.contents().contains(**name));
        assert!(name.is_none(), "{path}: {}", tab.contents());
        let status = tab.eval("performance.getEntriesByType('navigation')[0].responseStatus");
        let refused = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];
        assert!(refused.iter().any(|one| status == json!(one.as_u16())), "{path}: {status}");
    }
}
