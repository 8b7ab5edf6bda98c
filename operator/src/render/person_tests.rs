//! Snapshots of persons, tokens, customers and jobs about guests.

use holdfast_protocol::customer::CustomerView;
use holdfast_protocol::machine_token::{TokenMade, TokenView};
use holdfast_protocol::objection::GuestJobView;
use holdfast_protocol::operator::{OperatorView, WhoAmI};
use insta::assert_snapshot;
use serde_json::json;

use super::samples::{now, read};
use super::{customer, guest_job, login, operator, token};
use crate::screen::{Colour, Style};

const PLAIN: Style = Style { colour: Colour::Off, columns: None };

#[test]
fn persons_and_their_scopes() {
    let all: Vec<OperatorView> = read(json!([
        { "name": "ada", "role": "admin", "expires_at": "2027-02-19T12:00:00Z" },
        { "name": "kim", "role": "operator", "scope": { "kind": "hosts", "labels": { "site": "vienna" } } },
        { "name": "ann@acme", "role": "customer", "scope": { "kind": "customer", "customer": "acme" },
            "revoked_at": "2026-11-20T12:00:00Z" },
    ]));
    assert_snapshot!(operator::operators(&all, now(), PLAIN));
    let who: WhoAmI = read(json!({ "name": "ci", "role": "customer", "proof": "machine_token",
        "scope": { "kind": "customer", "customer": "acme" }, "hub_version": "0.1.0" }));
    assert_snapshot!("whoami_machine", login::whoami("https://hub.example:8440", &who));
}

#[test]
fn machine_tokens() {
    let all: Vec<TokenView> = read(json!([
        { "name": "ci", "maker": "eve", "role": "operator", "scope": { "kind": "hosts", "labels": { "tier": "canary" } },
            "created_at": "2026-11-01T12:00:00Z", "expires_at": "2026-12-01T12:00:00Z", "used_at": "2026-11-21T11:00:00Z" },
        { "name": "old", "maker": "eve", "role": "viewer", "created_at": "2026-11-01T12:00:00Z",
            "revoked_at": "2026-11-10T12:00:00Z" },
    ]));
    assert_snapshot!(token::tokens(&all, now(), PLAIN));
    let made: TokenMade = read(
        json!({ "name": "ci", "role": "operator", "scope": { "kind": "hosts", "labels": { "tier": "canary" } },
        "token": "hfm_0123", "expires_at": "2026-12-21T12:00:00Z", "earlier_until": "2026-11-22T12:00:00Z" }),
    );
    assert_snapshot!("machine_token_made", token::made(&made, now()));
}

#[test]
fn customers() {
    let all: Vec<CustomerView> = read(json!([
        { "name": "acme", "origin": "registered", "version": 2, "guests": 3, "created_at": "2026-11-01T12:00:00Z",
            "changed_at": "2026-11-20T12:00:00Z", "fields": { "display_name": "Acme Inc.", "notes": "pays late",
            "contact": { "kind": "mail", "address": "ops@acme.example" }, "labels": { "tier": "gold" } } },
        { "name": "beta", "origin": "named", "version": 0, "guests": 1, "fields": {} },
    ]));
    assert_snapshot!(customer::customers(&all, PLAIN));
    assert_snapshot!("customer_added", customer::customer(&all[0], now()));
    assert_snapshot!("customer_named", customer::customer(&all[1], now()));
}

#[test]
fn jobs_about_guests() {
    let all: Vec<GuestJobView> = read(json!([
        { "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "host_id": "018f3c1e-6b1f-7c1d-9d0a-000000000002", "host": "box7",
            "guest": "018f3c1e-6b1f-7c1d-9d0a-000000000003", "customer": "acme", "verb": "destroy_guest", "state": "waiting",
            "taken_at": "2026-11-21T11:55:00Z", "due_at": "2026-11-21T12:05:00Z",
            "objections": [{ "by": "ann@acme", "reason": "we still need it", "at": "2026-11-21T11:58:00Z" }] },
    ]));
    assert_snapshot!(guest_job::jobs(&all, now(), PLAIN));
    assert_snapshot!("job_objected", guest_job::objected(&all[0], now()));
}
