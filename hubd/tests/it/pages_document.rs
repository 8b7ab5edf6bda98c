//! Pages of the whole document: its text, its versions, over HTTPS.

use reqwest::StatusCode;

use crate::pages::{open, send};
use crate::pages_forms::{box7, fields, press};

const EDIT: &str = "/hosts/box7/desired/edit";

#[tokio::test(flavor = "multi_thread")]
async fn the_text_is_shown_with_its_meanings_and_changed_after_its_review() {
    let (box7, browser) = box7().await;
    let page = open(&browser, "/hosts/box7/desired").await;
    assert_eq!(page.status, StatusCode::OK);
    for text in [
        "Generation 1 by admin",
        "The host holds it.",
        "href=\"/hosts/box7/policies/usual/edit\"",
        "New storage target",
    ] {
        assert!(page.html.contains(text), "{text}: {}", page.html);
    }
    assert!(page.html.contains("<span class=\"key\">&#34;guests&#34;</span>"), "{}", page.html);
    let editor = open(&browser, EDIT).await;
    let text = fields(&editor, EDIT)["text"].clone();
    assert!(text.contains("\"memory_mib\": 512"), "one long line was given line ends: {text}");
    let next = text.replacen("\"memory_mib\": 512", "\"memory_mib\": 1024", 1);
    let wish = [("text", next.as_str()), ("reason", "by the text")];
    let review = press(&browser, EDIT, &editor, "review", &wish).await;
    assert!(review.html.contains("<ins>1024</ins>"), "{}", review.html);
    let back = press(&browser, EDIT, &review, "edit", &[]).await;
    assert_eq!(fields(&back, EDIT)["text"], next.trim_end());
    for _ in 0..2 {
        let made = press(&browser, EDIT, &review, "apply", &[]).await;
        assert_eq!(made.goes_to(), "/hosts/box7/desired/history/2", "{}", made.html);
    }
    assert_eq!(box7.newest_document().await["guests"][0]["size"]["memory_mib"], 1024);
    // Who still has the earlier one is shown both.
    let late =
        press(&browser, EDIT, &editor, "review", &[("text", next.as_str()), ("reason", "too late")]).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED);
    assert!(
        late.html.contains("by the text") && late.html.contains("Somebody else was first"),
        "{}",
        late.html
    );
    let on = press(&browser, EDIT, &late, "edit", &[]).await;
    assert_eq!(fields(&on, EDIT)["generation"], "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_the_text_is_shown_with_its_line() {
    let (box7, browser) = box7().await;
    let editor = open(&browser, EDIT).await;
    let text = fields(&editor, EDIT)["text"].clone();
    let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    for (from, to, part, message) in [
        ("\"cores\": 2", "\"cores\": 0", "\"cores\": 0", "0 cores is out of range"),
        ("\"cores\": 2", "\"cores\": 2,,", "\"cores\": 2,,", "is not JSON"),
        ("\"golden\"", "\"gilded\"", "\"gilded\"", "unknown field"),
        ("10.66.0.12/24", "10.66.0.11/24", "10.66.0.11/24", "is there twice"),
        ("\"policy\": \"usual\"", "\"policy\": \"other\"", "\"policy\": \"other\"", "policies"),
    ] {
        let bad = text.replacen(from, to, 1);
        let wish = [("text", bad.as_str()), ("reason", "for the test")];
        let refused = press(&browser, EDIT, &editor, "review", &wish).await;
        assert!(refused.status.is_client_error(), "{to}: {}", refused.html);
        // The second of two equal addresses is the mistake.
        let line = if to.contains("10.66") {
            bad.lines().enumerate().filter(|(_, line)| line.contains(part)).last().unwrap().0 + 1
        } else {
            line_of(&bad, part)
        };
        assert!(
            refused.html.contains(&format!("Line {line}</a>: ")),
            "{to} is on line {line}: {}",
            refused.html
        );
        assert!(
            refused.html.contains(message) && refused.html.contains("class=\"bad\""),
            "{to}: {}",
            refused.html
        );
        assert_eq!(fields(&refused, EDIT)["text"], bad.trim_end(), "{to}");
    }
    let unexplained = press(&browser, EDIT, &editor, "review", &[("reason", "")]).await;
    assert!(unexplained.html.contains("<a href=\"#field-reason\">Reason</a>"), "{}", unexplained.html);
    assert_eq!(box7.newest().await.generation.number(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_is_put_again() {
    let (box7, browser) = box7().await;
    let editor = open(&browser, EDIT).await;
    let next = fields(&editor, EDIT)["text"].replacen("\"memory_mib\": 512", "\"memory_mib\": 1024", 1);
    let review =
        press(&browser, EDIT, &editor, "review", &[("text", next.as_str()), ("reason", "a mistake")]).await;
    assert_eq!(press(&browser, EDIT, &review, "apply", &[]).await.status, StatusCode::SEE_OTHER);
    let history = open(&browser, "/hosts/box7/desired/history").await;
    for text in ["a mistake", "eve", "href=\"/hosts/box7/desired/history/1\""] {
        assert!(history.html.contains(text), "{text}: {}", history.html);
    }
    let path = "/hosts/box7/desired/rollback";
    let first = open(&browser, "/hosts/box7/desired/history/1").await;
    let bad = press(&browser, path, &first, "review", &[("reason", "")]).await;
    assert!(bad.status.is_client_error() && bad.html.contains("role=\"alert\""), "{}", bad.html);
    let review = press(&browser, path, &first, "review", &[("reason", "back again")]).await;
    assert!(review.html.contains("<ins>512</ins>"), "{}", review.html);
    for _ in 0..2 {
        assert_eq!(
            press(&browser, path, &review, "apply", &[]).await.goes_to(),
            "/hosts/box7/desired/history/3"
        );
    }
    assert_eq!(box7.newest_document().await["guests"][0]["size"]["memory_mib"], 512);
    let stale = press(&browser, path, &first, "review", &[("reason", "once more")]).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED, "{}", stale.html);
    assert_eq!(open(&browser, "/hosts/box7/desired/history/99").await.status, StatusCode::NOT_FOUND);
    assert_eq!(send(&browser, path, &[]).await.status, StatusCode::FORBIDDEN);
}
