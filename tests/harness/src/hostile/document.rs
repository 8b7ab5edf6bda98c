//! Hostile desired documents: valid, nearly valid and broken.
//!
//! In: dice, the honest guests, and which generation is held. Out: a text and its intended kind. Each has a grammar
//! rule for the place of its fault: in its number, in one guest, in the list of guests, or in its bytes.

use serde_json::{Value, json};

use super::promise;

use crate::fixtures::{FOREIGN, guest, uid};
use power_disk::dice::Dice;

/// Names that get another meaning when a program inserts them into a line, a path or a property string.
const SPLICES: [&str; 12] = [
    "web-1,mp9=/dev/sda,mp=/x",
    "web-1\nlxc.mount.entry: / mnt none bind",
    "../../etc/passwd",
    "a;reboot",
    "$(reboot)",
    "web 1",
    "",
    "-v",
    "web-1,net0=bridge=vmbr9",
    "wëb",
    "a\u{0}b",
    "web-1#",
];

/// Numbers around every edge, as JSON writes them.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "63",
    "64",
    "128",
    "256",
    "512",
    "4194304",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1.5",
    "1e3",
    "\"2\"",
    "null",
];

/// Where the agent's local API answers here, by root's settings.
pub const LISTENER: &str = "10.66.0.200";

/// The router, which root keeps from guests.
pub const ROUTER: &str = "10.66.0.254";

/// Addresses of others, addresses that no guest has, and texts that are no addresses.
const ADDRESSES: [&str; 9] = [
    "10.66.0.2/24",
    "10.66.0.1/24",
    "0.0.0.0/0",
    "10.66.0.9/24",
    "::1/64",
    "10.66.0.254/24",
    "10.66.0.200/24",
    "10.66.0.200/32",
    "10.66.0.1/16",
];

/// Fields that no document has.
const FOREIGN_FIELDS: [(&str, &str); 9] = [
    ("scratch", "true"),
    ("features", "\"nesting=1,keyctl=1\""),
    ("hookscript", "\"local:snippets/x.sh\""),
    ("lxc.mount.entry", "\"/ mnt none bind 0 0\""),
    ("unprivileged", "false"),
    ("dev0", "\"/dev/sda\""),
    ("protection", "false"),
    ("destroy", "true"),
    ("template", "1"),
];

pub struct Written {
    pub text: String,
    /// Its description, in words.
    pub what: String,
}

pub fn write(dice: &mut Dice, held: u64) -> Written {
    let mut what = Vec::new();
    let mut guests: Vec<Value> = vec![json!(guest(1)), json!(guest(2))];
    promise::under(&mut guests);
    let mut policies = promise::honest();
    for _ in 0..dice.below(4) {
        what.push(spoil_list(dice, &mut guests));
    }
    if dice.below(500) == 0 {
        guests.extend((0..1_500).map(|n| another(100 + n)));
        what.push("with 1500 guests".to_owned());
    }
    if dice.below(3) == 0 {
        what.push(promise::spoil(dice, &mut policies, &mut guests));
    }
    let (number, word) = number(dice, held);
    what.insert(0, format!("generation {number} ({word})"));
    // Rare polls make weeks fast. A document that requests one every few seconds is in force for hours, which costs as
    // much as days.
    let poll = match dice.below(400) {
        0 => *dice.of_these(&["30", "60", "1"]),
        1..20 => *dice.of_these(&["600", "900", "1800"]),
        20..40 => *dice.of_these(&["0", "3601", "\"30\""]),
        _ => "3600",
    };
    let schema = if dice.below(20) == 0 { "holdfast.desired/v2" } else { "holdfast.desired/v1" };
    // The numbers are put in as text: not all of them are ones that JSON can hold.
    let list = numbers_in(&json!(guests).to_string());
    let mut text = format!(
        "{{\"schema\":\"{schema}\",\"generation\":{number},\"poll_interval_s\":{poll},\"policies\":{policies},\"guests\":{list}}}"
    );
    if dice.below(8) == 0 {
        what.push(spoil_bytes(dice, &mut text));
    }
    Written { text, what: format!("document: {}", what.join(", ")) }
}

/// `"#1e3"` in a place for a number means the number exactly as written.
fn numbers_in(text: &str) -> String {
    NUMBERS
        .iter()
        .fold(text.to_owned(), |text, number| text.replace(&format!("{:?}", format!("#{number}")), number))
}

fn number(dice: &mut Dice, held: u64) -> (String, &'static str) {
    match dice.below(16) {
        0 => (held.to_string(), "equal"),
        1 => (held.saturating_sub(1 + dice.below(20)).to_string(), "stale"),
        2 => ((held + 1_000).to_string(), "as far as may be"),
        3 => ((held + 1_001).to_string(), "too far"),
        4 => ("9223372036854775807".to_owned(), "fast forward"),
        5 => ("18446744073709551615".to_owned(), "fast forward"),
        6 => ((*dice.of_these(&NUMBERS)).to_owned(), "odd"),
        7 => ((held + 2 + dice.below(50)).to_string(), "jumping"),
        _ => ((held + 1).to_string(), "next"),
    }
}

/// A guest that does not exist yet.
fn another(n: u64) -> Value {
    let mut goal = json!(guest(3));
    goal["uid"] = json!(format!("018f3d00-6b1f-7c1d-9d0a-{n:012x}"));
    goal["name"] = json!(format!("new-{n}"));
    goal["network"]["address"] = json!(format!("10.66.{}.{}/16", 1 + n / 250, 1 + n % 250));
    goal
}

fn spoil_list(dice: &mut Dice, guests: &mut Vec<Value>) -> String {
    if guests.is_empty() {
        guests.push(json!(guest(1)));
        return "a guest again".to_owned();
    }
    let at = usize::try_from(dice.below(guests.len() as u64)).unwrap();
    match dice.below(12) {
        0 | 1 => {
            guests.remove(at);
            "a guest dropped".to_owned()
        }
        2 => {
            guests.clear();
            "all guests dropped".to_owned()
        }
        3 => {
            let twice = guests[at].clone();
            guests.push(twice);
            "a guest twice".to_owned()
        }
        4 => {
            // A few identities, so that the range of numbers is not used up on the first day.
            guests.push(another(dice.below(4)));
            "one guest more".to_owned()
        }
        5 => {
            let other = uid(u8::try_from(1 + dice.below(3)).unwrap());
            guests[at]["uid"] = json!(other);
            "another's identity".to_owned()
        }
        _ => spoil_guest(dice, &mut guests[at]),
    }
}

fn spoil_guest(dice: &mut Dice, goal: &mut Value) -> String {
    let odd = |dice: &mut Dice| json!(format!("#{}", dice.of_these(&NUMBERS)));
    match dice.below(18) {
        0 | 1 => {
            goal["run"] = json!("stopped");
            "a guest stopped".to_owned()
        }
        2 | 3 => {
            let field = *dice.of_these(&["cores", "memory_mib", "swap_mib", "rootfs_gib"]);
            goal["size"][field] = odd(dice);
            format!("{field} {}", goal["size"][field])
        }
        4 => {
            goal["size"]["memory_mib"] = json!(*dice.of_these(&[128, 256, 512]));
            "another memory".to_owned()
        }
        5 => {
            goal["golden"] = json!(*dice.of_these(&["2026.11.2", "../2026.11.1", "latest", ""]));
            format!("golden {}", goal["golden"])
        }
        6 => {
            let bridges = ["vmbr1", "vmbr0,firewall=0", "vmbr0\nmp0: /etc,mp=/etc", "lo"];
            goal["network"]["bridge"] = json!(*dice.of_these(&bridges));
            format!("bridge {}", goal["network"]["bridge"])
        }
        7 => {
            goal["name"] = json!(*dice.of_these(&SPLICES));
            format!("name {}", goal["name"])
        }
        8 | 9 => {
            let numbers = [FOREIGN[0], FOREIGN[1], 300, 301, 303, 309, 310, 99, 160, 0];
            goal["vmid"] = json!(*dice.of_these(&numbers));
            format!("vmid {}", goal["vmid"])
        }
        10 => {
            let (field, value) = *dice.of_these(&FOREIGN_FIELDS);
            goal[field] = serde_json::from_str(value).unwrap();
            format!("field {field}")
        }
        11 => {
            goal["network"]["address"] = json!(*dice.of_these(&ADDRESSES));
            format!("address {}", goal["network"]["address"])
        }
        12 => {
            let address = *dice.of_these(&[LISTENER, ROUTER, "10.66.0.2", "10.66.0.1"]);
            goal["network"]["address"] = json!(format!("{address}/24"));
            goal["network"]["gateway"] = json!("10.66.0.253");
            format!("address {address} behind another gateway")
        }
        13 => {
            let other = *dice.of_these(&["web-1", "web-2", "web-3", "web-1-former", "localhost"]);
            goal["name"] = json!(other);
            format!("name {other}")
        }
        14 => {
            let place =
                *dice.of_these(&["tank", "backup2", "nowhere", "../tank", "tank:300/vm-300-disk-0.raw"]);
            goal["storage"] = json!(place);
            format!("disks on {place}")
        }
        15 => {
            let field = *dice.of_these(&["cpu_percent", "memory_percent", "root_disk_percent", "for"]);
            goal["levels"] = json!({ field: odd(dice) });
            format!("levels {}", goal["levels"])
        }
        16 => {
            let sha256 = "0".repeat(64);
            goal["controller"] =
                json!({ "version": *dice.of_these(&["9.9.9", "2026.1.0", "x"]), "sha256": sha256 });
            format!("controller {}", goal["controller"]["version"])
        }
        _ => spoil_volumes(dice, goal),
    }
}

fn spoil_volumes(dice: &mut Dice, goal: &mut Value) -> String {
    let Some(volumes) = goal["volumes"].as_array_mut().filter(|volumes| !volumes.is_empty()) else {
        return "no volumes".to_owned();
    };
    match dice.below(6) {
        0 => {
            volumes.remove(0);
            "a volume dropped".to_owned()
        }
        1 => {
            volumes[0]["size_gib"] = json!(format!("#{}", dice.of_these(&NUMBERS)));
            format!("a volume of {}", volumes[0]["size_gib"])
        }
        2 => {
            volumes[0]["mount"] = json!(*dice.of_these(&["/", "/etc", "/srv/../etc", "/srv/db,ro=1", "srv"]));
            format!("a volume at {}", volumes[0]["mount"])
        }
        3 => {
            volumes[0]["kind"] = json!({ "bulk": { "none": "nobody needs it" } });
            "a volume out of the backups".to_owned()
        }
        4 => {
            volumes[0]["name"] = json!(*dice.of_these(&["media", "other", "../db"]));
            format!("a volume called {}", volumes[0]["name"])
        }
        _ => {
            volumes[0]["volid"] = json!("tank:302/vm-302-disk-0.raw");
            "a stranger's volume".to_owned()
        }
    }
}

/// Where a byte of a text may be cut or put.
fn place(dice: &mut Dice, text: &str) -> usize {
    let mut at = usize::try_from(dice.below(text.len() as u64 + 1)).unwrap();
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Damages the bytes of any text.
pub fn spoil_bytes(dice: &mut Dice, text: &mut String) -> String {
    let at = place(dice, text);
    match dice.below(8) {
        0 | 1 => {
            text.truncate(at);
            format!("cut at byte {at}")
        }
        2 => {
            text.insert(at, *dice.of_these(&['"', '}', '{', '\\', '\u{0}', '9', ',', ' ', '\u{feff}']));
            format!("a character more at {at}")
        }
        3 => {
            if at < text.len() {
                text.remove(at);
            }
            format!("a character less at {at}")
        }
        4 => {
            text.insert_str(text.len().min(1), "\"schema\":\"holdfast.desired/v1\",");
            "a key twice".to_owned()
        }
        5 => {
            *text = format!("{}{text}{}", "[".repeat(300), "]".repeat(300));
            "deep".to_owned()
        }
        6 => {
            text.push_str(&" ".repeat(1_100_000));
            "huge".to_owned()
        }
        _ => {
            text.push_str("{}");
            "with a tail".to_owned()
        }
    }
}
