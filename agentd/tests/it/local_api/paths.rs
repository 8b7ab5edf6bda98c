//! Tests of other spellings, methods and hosts.

use agentd::api::routes;
use holdfast_protocol::code::ErrorCode;

use crate::local_api::world::{Expect, WEB_AT, World};

/// What each path of the table takes, as the protocol's page says.
const TAKES: [(&str, &[&str]); 22] = [
    ("/healthz", &["GET"]),
    ("/v1/openapi.json", &["GET"]),
    ("/v1/claim", &["POST"]),
    ("/v1/hello", &["POST"]),
    ("/v1/self", &["GET"]),
    ("/v1/storage", &["GET"]),
    ("/v1/operations/{id}", &["GET", "DELETE"]),
    ("/v1/snapshots", &["GET", "POST"]),
    ("/v1/snapshots/{name}", &["DELETE"]),
    ("/v1/rollback", &["POST"]),
    ("/v1/backups", &["GET", "POST"]),
    ("/v1/backups/due", &["GET"]),
    ("/v1/backups/{id}", &["GET"]),
    ("/v1/quiesce-windows", &["POST"]),
    ("/v1/quiesce-windows/{id}", &["GET", "DELETE"]),
    ("/v1/quiesce-windows/{id}/quiesced", &["PUT"]),
    ("/v1/quiesce-windows/{id}/released", &["PUT"]),
    ("/v1/restore-tests", &["GET"]),
    ("/v1/restore-tests/report", &["POST"]),
    ("/v1/desired", &["GET"]),
    ("/v1/artifacts/{sha256}", &["GET"]),
    ("/v1/audit", &["GET"]),
];

const METHODS: [&str; 10] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "M-SEARCH"];

/// Other spellings of `/v1/self`, and paths that never were.
const SPELLINGS: [&str; 38] = [
    "/",
    "//",
    "/v1",
    "/v1/",
    "/v1/self/",
    "//v1/self",
    "/v1//self",
    "/v1/self//",
    "/./v1/self",
    "/v1/./self",
    "/v1/self/.",
    "/v1/x/../self",
    "/v1/../v1/self",
    "/../v1/self",
    "/v1/..%2fv1/self",
    "/v1/%2e%2e/v1/self",
    "/v1%2fself",
    "/v1%2Fself",
    "/%76%31/self",
    "/v1/sel%66",
    "/v1/self%00",
    "/v1/self%00.html",
    "/v1/self%20",
    "/v1/self%0d%0ax:y",
    "/v1/self;",
    "/v1/self;x=1",
    "/v1;x/self",
    "/V1/self",
    "/v1/SELF",
    "/v1/self.json",
    "/v1\\self",
    "/v2/self",
    "/v1/guests/018f3c1e-6b1f-7c1d-9d0a-000000000002",
    "/v1/self/018f3c1e-6b1f-7c1d-9d0a-000000000002",
    "/v1/agent/checkin",
    "/metrics",
    "/api2/json/nodes",
    "/.well-known/security.txt",
];

pub async fn all(world: &World) -> usize {
    let known: Vec<&str> = routes::table().into_iter().map(|(path, _)| path).collect();
    let said: Vec<&str> = TAKES.iter().map(|(path, _)| *path).collect();
    assert_eq!(known, said, "a call that this table does not know");
    methods(world).await + spellings(world).await + hosts(world).await
}

async fn methods(world: &World) -> usize {
    let mut count = 0;
    for (path, takes) in TAKES {
        let path = path
            .replace("{id}", "018f3c1e-6b1f-7c1d-9d0a-000000000003")
            .replace("{name}", "before")
            .replace("{sha256}", &"ab".repeat(32));
        for method in METHODS.iter().filter(|method| !takes.contains(method)) {
            let request = world.request(method, &path, Some(&world.web), "");
            let expect = Expect::Allows(takes);
            world.refuses(&format!("{method} {path}"), WEB_AT, request.as_bytes(), expect).await;
            count += 1;
        }
        let request = world.request("HEAD", &path, Some(&world.web), "");
        world.refuses(&format!("HEAD {path}"), WEB_AT, request.as_bytes(), Expect::HeadAlone(405)).await;
        count += 1;
    }
    count
}

async fn spellings(world: &World) -> usize {
    let mut count = 0;
    let long = format!("/v1/{}", "a".repeat(8 * 1024));
    let utf8 = "/v1/sélf";
    for path in SPELLINGS.into_iter().chain([long.as_str(), utf8]) {
        for method in ["GET", "POST"] {
            let request = world.request(method, path, Some(&world.web), "");
            let expect = Expect::Unheard(ErrorCode::NotFound);
            world.refuses(&format!("{method} {path}"), WEB_AT, request.as_bytes(), expect).await;
            count += 1;
        }
    }
    // In these the HTTP library finds no path at all.
    for target in ["v1/self", "*", "\\v1\\self", "/v1/self x", "/v1/\0self", "10.0.0.1:80", "?/v1/self"] {
        let request = world.request("GET", target, Some(&world.web), "");
        let before = world.calls();
        let answer = world.ask(WEB_AT, &request).await;
        let refused = answer.as_ref().is_none_or(|answer| matches!(answer.status, 400 | 404 | 421));
        assert!(refused && world.calls() == before, "{target:?}: {answer:?}");
        count += 1;
    }
    // A query where none is taken, from a caller that is allowed to call: the mistake is reported, and nothing else
    // happens.
    for (method, path) in [
        ("GET", "/v1/self?x"),
        ("GET", "/v1/storage?guest=db"),
        ("POST", "/v1/snapshots?"),
        ("POST", "/v1/claim?x"),
    ] {
        let request = world.request(method, path, Some(&world.web), "{}");
        world.refuses(path, WEB_AT, request.as_bytes(), Expect::Code(ErrorCode::Range)).await;
        count += 1;
    }
    count
}

async fn hosts(world: &World) -> usize {
    let own = world.address;
    let bearer = format!("authorization: Bearer {}\r\n", world.web);
    let with = |host: &str| format!("GET /v1/self HTTP/1.1\r\n{host}{bearer}\r\n");
    let absolute = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: {own}\r\n{bearer}\r\n");
    let rows = [
        ("no host", with("")),
        ("an empty host", with("host:\r\n")),
        ("a name", with("host: holdfast-agent\r\n")),
        ("a name with the port", with(&format!("host: evil.example:{}\r\n", own.port()))),
        ("localhost", with(&format!("host: localhost:{}\r\n", own.port()))),
        ("no port", with(&format!("host: {}\r\n", own.ip()))),
        ("another port", with(&format!("host: {}:1\r\n", own.ip()))),
        ("another address of the box", with(&format!("host: 127.0.0.1:{}\r\n", own.port()))),
        ("the guest's own address", with(&format!("host: {WEB_AT}:{}\r\n", own.port()))),
        ("an address in another spelling", with(&format!("host: 127.66.1793:{}\r\n", own.port()))),
        ("with a user", with(&format!("host: x@{own}\r\n"))),
        ("two of the same", with(&format!("host: {own}\r\nhost: {own}\r\n"))),
        ("two that differ", with(&format!("host: {own}\r\nhost: evil.example\r\n"))),
        ("two in one", with(&format!("host: {own}, evil.example\r\n"))),
        ("an absolute form", absolute(&format!("https://{own}/v1/self"))),
        ("an absolute form without TLS", absolute(&format!("http://{own}/v1/self"))),
        ("an absolute form of another host", absolute("https://evil.example/v1/self")),
        ("an absolute form of another kind", absolute("ftp://evil.example/v1/self")),
    ];
    let count = rows.len();
    for (name, request) in rows {
        let expect = Expect::Unheard(ErrorCode::Misdirected);
        world.refuses(&format!("host {name}"), WEB_AT, request.as_bytes(), expect).await;
    }
    count
}
