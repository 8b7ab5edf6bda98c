//! The table of decisions.

use holdfast_protocol::bootstrap::{BootstrapSchema, TicketSchema};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;

use super::*;

fn ticket(mode: Mode) -> Found {
    Found::Ticket(Box::new(Ticket {
        schema: TicketSchema::V1,
        endpoint: "https://10.66.0.1:8443".to_owned(),
        pin: Pin::of(PinKind::Leaf, b"leaf"),
        claim: Secret::new("a-claim-of-some-length".to_owned()),
        mode,
    }))
}

fn kept() -> Bootstrap {
    Bootstrap {
        schema: BootstrapSchema::V1,
        customer: "acme".parse().unwrap(),
        guest: GuestUid::new(uuid::Uuid::nil()),
        hub: "https://hub.example".to_owned(),
        endpoint: "https://10.66.0.1:8443".to_owned(),
        pin: Pin::of(PinKind::Leaf, b"leaf"),
        token: Secret::new("a-token-of-some-length".to_owned()),
        token_generation: 1,
    }
}

fn attempt(outcome: Outcome) -> Option<Attempt> {
    let Found::Ticket(ticket) = ticket(Mode::Serve) else { panic!("a ticket") };
    let mut attempt = Attempt::begin(&ticket).unwrap();
    attempt.outcome = outcome;
    Some(attempt)
}

fn word(
    kept: Option<Bootstrap>,
    ticket: Found,
    attempt: Option<Attempt>,
    doubt: Option<Doubt>,
) -> &'static str {
    match decide(Seen { kept: Ok(kept), ticket: Ok(ticket), attempt: Ok(attempt) }, doubt) {
        Next::SetUp(SetUp::NoTicket) => "no ticket",
        Next::SetUp(SetUp::Pending) => "pending",
        Next::SetUp(SetUp::Refused { .. }) => "refused",
        Next::SetUp(SetUp::Spent) => "spent",
        Next::SetUp(_) => "set-up",
        Next::Claim(Claim { attempt: None, earlier: Earlier::None, .. }) => "claim",
        Next::Claim(Claim { attempt: Some(_), earlier: Earlier::None, .. }) => "claim again",
        Next::Claim(Claim { earlier: Earlier::Kept, .. }) => "claim over",
        Next::Serve(_, Mode::RestoreTest) => "test",
        Next::Serve(_, Mode::Serve) => "serve",
    }
}

#[test]
fn the_table() {
    let no = || Outcome::Refused("no".to_owned());
    let (serve, test) = (|| ticket(Mode::Serve), || ticket(Mode::RestoreTest));
    let doubt = |cause| Some(Doubt { token: kept().token.hash(), cause });
    let token = doubt(Cause::Rejected);
    let silent = doubt(Cause::Silent);
    let other = Some(Doubt { token: TokenHash::of(b"another"), cause: Cause::Rejected });
    let moved = || Bootstrap { endpoint: "https://10.67.0.1:8443".to_owned(), ..kept() };
    let cases = [
        (word(None, Found::Absent, None, None), "no ticket"),
        (word(None, Found::Pending, None, None), "pending"),
        (word(None, serve(), None, None), "claim"),
        (word(None, serve(), attempt(Outcome::Open), None), "claim again"),
        (word(None, serve(), attempt(Outcome::Traded), None), "spent"),
        (word(None, serve(), attempt(no()), None), "refused"),
        (word(Some(kept()), Found::Absent, None, None), "serve"),
        (word(Some(kept()), Found::Absent, None, token), "serve"),
        (word(Some(kept()), Found::Pending, None, None), "pending"),
        (word(Some(kept()), serve(), None, None), "serve"),
        (word(Some(kept()), serve(), None, other), "serve"),
        (word(Some(kept()), serve(), None, token), "claim over"),
        (word(Some(kept()), serve(), None, silent), "serve"),
        (word(Some(moved()), serve(), None, silent), "claim over"),
        (word(Some(moved()), serve(), None, None), "serve"),
        (word(Some(kept()), serve(), attempt(Outcome::Traded), token), "serve"),
        (word(Some(kept()), serve(), attempt(no()), token), "serve"),
        (word(Some(kept()), test(), None, None), "claim over"),
        (word(Some(kept()), test(), attempt(Outcome::Traded), None), "test"),
        (word(Some(kept()), test(), attempt(no()), None), "refused"),
    ];
    for (line, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(found, expected, "line {line}");
    }
}

#[test]
fn the_record_of_another_ticket_says_nothing_about_this_one() {
    let Found::Ticket(mut other) = ticket(Mode::Serve) else { panic!("a ticket") };
    other.claim = Secret::new("another-claim-of-some-length".to_owned());
    let mut attempt = Attempt::begin(&other).unwrap();
    attempt.outcome = Outcome::Traded;
    assert_eq!(word(None, ticket(Mode::Serve), Some(attempt), None), "claim");
}

#[test]
fn a_bad_ticket_does_not_disturb_a_guest_that_serves() {
    let seen = |kept| Seen { kept: Ok(kept), ticket: Err(TicketProblem::Twice), attempt: Ok(None) };
    assert!(matches!(decide(seen(Some(kept())), None), Next::Serve(_, Mode::Serve)));
    assert!(matches!(decide(seen(None), None), Next::SetUp(SetUp::Ticket(_))));
}
