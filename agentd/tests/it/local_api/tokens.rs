//! Tests of invalid, foreign and old tokens.

use std::net::IpAddr;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::secret::TokenHash;

use crate::local_api::world::{DB, DB_AT, Expect, WEB_AT, World};

/// The lines of a request's head that should say who the caller is, and where it comes from.
struct Row {
    name: &'static str,
    from: IpAddr,
    lines: String,
    query: String,
}

fn rows(world: &World) -> Vec<Row> {
    let web = &world.web;
    let row = |name, lines: String| Row { name, from: WEB_AT, lines, query: String::new() };
    let bearer = |name, token: &str| row(name, format!("authorization: Bearer {token}\r\n"));
    let asked = |name, query: String| Row { name, from: WEB_AT, lines: String::new(), query };
    let (first, rest) = web.split_at(1);
    let other = if first == "A" { "B" } else { "A" };
    let hash: String = TokenHash::of(web.as_bytes()).as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    vec![
        row("missing", String::new()),
        row("an empty header", "authorization:\r\n".to_owned()),
        row("a scheme alone", "authorization: Bearer\r\n".to_owned()),
        row("a token alone", format!("authorization: {web}\r\n")),
        bearer("two blanks", &format!(" {web}")),
        bearer("a tab before it", &format!("\t{web}")),
        bearer("a wrong one", "made-up"),
        bearer("one letter off", &format!("{other}{rest}")),
        bearer("its first half", &web[..web.len() / 2]),
        bearer("all but its end", &web[..web.len() - 1]),
        bearer("a letter more", &format!("{web}A")),
        bearer("padded", &format!("{web}=")),
        bearer("in quotes", &format!("\"{web}\"")),
        bearer("twice, with a comma", &format!("{web}, Bearer {web}")),
        bearer("twice, with a blank", &format!("{web} {web}")),
        bearer("in upper case", &web.to_ascii_uppercase()),
        bearer("its hash", &hash),
        bearer("an escaped letter", &format!("%41{web}")),
        bearer("ten kilobytes", &"a".repeat(10 * 1024)),
        bearer("ten kilobytes that begin right", &format!("{web}{}", "a".repeat(10 * 1024))),
        bearer("a letter of no ASCII", &format!("{web}é")),
        bearer("a wide digit", "１２３"),
        row("another scheme", format!("authorization: Basic {web}\r\n")),
        row("a scheme of ours", format!("authorization: Holdfast {web}\r\n")),
        row("a header of another name", format!("x-api-key: {web}\r\n")),
        row("for a proxy", format!("proxy-authorization: Bearer {web}\r\n")),
        row("a cookie", format!("cookie: token={web}; authorization=Bearer {web}\r\n")),
        row("two headers", format!("authorization: Bearer {web}\r\nauthorization: Bearer {web}\r\n")),
        row(
            "two headers, the first right",
            format!("authorization: Bearer {web}\r\nAuthorization: Bearer made-up\r\n"),
        ),
        row(
            "two headers, the second right",
            format!("authorization: Bearer made-up\r\nAUTHORIZATION: Bearer {web}\r\n"),
        ),
        row(
            "two guests' headers",
            format!("authorization: Bearer {web}\r\nauthorization: Bearer {}\r\n", world.db),
        ),
        asked("in the query", format!("?token={web}")),
        asked("in the query as OAuth has it", format!("?access_token={web}")),
        asked("in the query as the header has it", format!("?authorization=Bearer%20{web}")),
        Row { from: DB_AT, ..bearer("a wrong one from another address", "made-up") },
    ]
}

pub async fn all(world: &World) -> usize {
    let calls = [
        ("GET", "/v1/self"),
        ("GET", "/v1/backups"),
        ("GET", "/v1/backups/due"),
        ("DELETE", "/v1/snapshots/before"),
        ("POST", "/v1/rollback"),
    ];
    let mut count = 0;
    let mut answers = Vec::new();
    for (method, path) in calls {
        for Row { name, from, lines, query } in rows(world) {
            let request = world.head(method, &format!("{path}{query}"), &lines);
            let name = format!("token {name} at {method} {path}");
            let expect = Expect::Code(ErrorCode::Unauthenticated);
            answers.push(world.refuses(&name, from, request.as_bytes(), expect).await.unwrap());
            count += 1;
        }
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "an answer tells what was wrong with a token"
    );
    count
}

/// Valid tokens, shown by another caller than their guest while the guest uses them. The stranger learns no more than
/// without one, and both are frozen until an operator has checked.
pub async fn holders(world: &World) -> usize {
    let nothing = world.ask(WEB_AT, &world.head("GET", "/v1/self", "")).await.unwrap();
    let anew = world.claim(DB, DB_AT).await;
    world.serves(DB_AT, &anew).await;
    let rows = [
        ("an earlier generation's, from its own address", DB_AT, &world.db),
        ("an earlier generation's, from a neighbour", WEB_AT, &world.db),
        ("another guest's", WEB_AT, &anew),
        ("its own, from an address of nobody", IpAddr::from([127, 66, 7, 99]), &anew),
    ];
    for (name, from, token) in rows {
        let before = world.state();
        let reported = world.ask(from, &world.request("GET", "/v1/self", Some(token), "")).await.unwrap();
        assert_eq!(reported, nothing, "{name}");
        let after = world.state();
        let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
        let tables: Vec<&str> = new.iter().map(|(table, _)| table.as_str()).collect();
        assert_eq!(tables, ["audit", "guest"], "{name}: {new:?}");
        let frozen = world.ask(DB_AT, &world.request("GET", "/v1/self", Some(&anew), "")).await.unwrap();
        assert_eq!(frozen.code(), Some(ErrorCode::Frozen), "{name}");
        // Once more is no second line, and the neighbour is served as ever.
        let again = world.ask(from, &world.request("GET", "/v1/self", Some(token), "")).await.unwrap();
        assert_eq!(again, nothing, "{name}");
        assert_eq!(world.state(), after, "{name}");
        world.serves(WEB_AT, &world.web).await;
        world.thaw(DB).await;
        world.serves(DB_AT, &anew).await;
    }
    rows.len()
}
