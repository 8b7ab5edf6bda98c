//! Attacks with stolen bootstrap tokens and tokens.
//!
//! In: two guests that have not redeemed their bootstrap tokens, which the hostile guest knows. Out: faults. A token
//! shown from another address uses nothing up, however often and however early. With a spoofed address the agent cannot
//! know which guest calls: the guest that redeems second is refused, and both are frozen. The other guests continue.

use serde_json::Value;

use super::super::test_bridge::within;
use super::client::{Answer, Guest, Token};
use super::net::{self, Net, address};

/// Requests of the hostile guest in the race for a bootstrap token. One address may make 120 at once.
const ATTEMPTS: usize = 40;

/// The guest whose tokens are shown from elsewhere, and the one whose address is spoofed.
pub const STOLEN_FROM: u8 = 4;
pub const SPOOFED: u8 = 5;

/// What the hostile guest has stolen.
pub struct Loot {
    pub uids: [String; 2],
    pub bootstrap: [Value; 2],
}

#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn expect(&mut self, what: &str, answer: &std::io::Result<Answer>, status: u16, code: &str) {
        match answer {
            Ok(answer) if answer.status == status && answer.code() == code => {}
            other => self.0.push(format!("{what}: wanted {status} {code}, got {other:?}")),
        }
    }
}

/// Runs the attack, and returns everything that was wrong.
pub fn theft(net: &Net, hostile: &Guest, loot: &Loot) -> Vec<String> {
    let mut faults = Faults::default();
    let [theirs, spoofed] = [0, 1].map(|at| (loot.uids[at].as_str(), &loot.bootstrap[at]));
    let victim = raced(net, hostile, theirs, &mut faults);
    taken_at_its_address(net, hostile, spoofed, &mut faults);

    // A token that its guest uses, shown from another address: both are frozen, and the thief learns nothing.
    let thief = hostile.with_token_of(&victim);
    let shown = within(net.guest(hostile.number), || thief.ask("GET", "/v1/self", Token::Own, ""));
    faults.expect("a stolen token from another address", &shown, 401, "UNAUTHENTICATED");
    let own = within(net.guest(STOLEN_FROM), || victim.ask("GET", "/v1/self", Token::Own, ""));
    faults.expect("its guest afterwards", &own, 403, "FROZEN");

    // Its own token from another of its addresses.
    net.speaks_from(hostile.number, net::stranger(0));
    let elsewhere = hostile.from(net::stranger(0));
    let shown = within(net.guest(hostile.number), || elsewhere.ask("GET", "/v1/self", Token::Own, ""));
    net.speaks_from_its_own(hostile.number);
    faults.expect("its own token from another address", &shown, 401, "UNAUTHENTICATED");
    let frozen = within(net.guest(hostile.number), || hostile.ask("GET", "/v1/self", Token::Own, ""));
    faults.expect("the hostile guest afterwards", &frozen, 403, "FROZEN");
    faults.0
}

/// The hostile guest shows a bootstrap token from its own address, before, while and after its guest redeems it.
fn raced(net: &Net, hostile: &Guest, (uid, bootstrap): (&str, &Value), faults: &mut Faults) -> Guest {
    let thief = hostile.without_token(bootstrap);
    let shows = |times: usize| {
        within(net.guest(hostile.number), || {
            (0..times).map(|_| thief.redeems(bootstrap)).collect::<Vec<std::io::Result<Answer>>>()
        })
    };
    let mut answers = shows(1);
    let victim = std::thread::scope(|scope| {
        let race = scope.spawn(|| shows(ATTEMPTS));
        let victim = within(net.guest(STOLEN_FROM), || Guest::claims(STOLEN_FROM, uid, bootstrap));
        answers.extend(race.join().unwrap());
        victim
    });
    answers.extend(shows(1));
    for answer in &answers {
        faults.expect("a bootstrap token from another address", answer, 403, "CLAIM_REFUSED");
    }
    let hello = within(net.guest(STOLEN_FROM), || victim.says_hello());
    faults.expect("the guest that redeemed it", &hello, 200, "");
    victim
}

/// The hostile guest redeems a bootstrap token from the address of its guest, which comes second.
fn taken_at_its_address(net: &Net, hostile: &Guest, (uid, bootstrap): (&str, &Value), faults: &mut Faults) {
    net.spoofs(hostile.number, SPOOFED);
    let stolen = within(net.guest(hostile.number), || {
        Guest::claims_from(address(SPOOFED), hostile.number, uid, bootstrap)
    });
    net.ends_spoofing(hostile.number, SPOOFED);
    let victim = hostile.without_token(bootstrap).at(SPOOFED);
    let second = within(net.guest(SPOOFED), || victim.redeems(bootstrap));
    faults.expect("the guest that comes second", &second, 403, "CLAIM_TWICE");
    let thief = hostile.with_token_of(&stolen);
    let elsewhere = within(net.guest(hostile.number), || thief.ask("GET", "/v1/self", Token::Own, ""));
    faults.expect("the stolen token from another address", &elsewhere, 401, "UNAUTHENTICATED");
    net.spoofs(hostile.number, SPOOFED);
    let frozen = within(net.guest(hostile.number), || stolen.ask("GET", "/v1/self", Token::Own, ""));
    net.ends_spoofing(hostile.number, SPOOFED);
    faults.expect("the stolen token from the spoofed address", &frozen, 403, "FROZEN");
}
