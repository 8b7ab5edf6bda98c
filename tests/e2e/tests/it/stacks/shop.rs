//! The shop: the guest's application under load.

use std::time::Duration;

use e2e::wait;
use serde_json::Value;

use super::guest::Guest;
use super::stand::{SHOP, Stand};

/// A database is filled, an image built; nothing is measured by it.
const OPENED: Duration = Duration::from_secs(300);
const ACKNOWLEDGED: &str = "/var/lib/postgresql/acknowledged";
/// Where Docker keeps what the till writes.
pub const JOURNAL: &str = "/var/lib/docker/volumes/shop_data/_data/journal";

/// Fills the guest and waits until both stacks are written to.
pub fn open(stand: &Stand) -> Guest {
    let shop = stand.made(1, SHOP);
    stand.step("PostgreSQL and Docker Compose in it, under load");
    for (inside, text) in [
        ("/etc/holdfast/stacks.toml", include_str!("guest/stacks.toml")),
        ("/srv/shop/compose.yml", include_str!("guest/compose.yml")),
        ("/srv/shop/image/Dockerfile", include_str!("guest/Dockerfile")),
        ("/srv/shop/image/till.sh", include_str!("guest/till.sh")),
        ("/srv/prepare.sh", include_str!("guest/prepare.sh")),
        ("/srv/whole.sh", include_str!("guest/whole.sh")),
    ] {
        shop.write(inside, text);
    }
    keep_ledger(&shop, "0.1");
    shop.run(&["/bin/bash", "/srv/prepare.sh"]);
    goes_on(&shop);
    let dry = shop.run(&["guestd", "quiesce", "--dry-run"]);
    assert!(dry.contains("postgresql@17-main.service"), "the cluster, not only its wrapper: {dry}");
    shop
}

/// Starts a database in a guest, and a program that commits rows to it, with a pause of this many seconds between two.
pub fn keep_ledger(guest: &Guest, pause_s: &str) {
    guest.write("/srv/writer.sh", include_str!("guest/writer.sh"));
    guest.write("/srv/ledger.sh", include_str!("guest/ledger.sh"));
    guest.run(&["/bin/bash", "/srv/ledger.sh", pause_s]);
}

/// Lets the database grow by 0.7 GiB that hardly compress: enough for a copy of half a minute.
pub fn grow(stand: &Stand, shop: &Guest) {
    stand.step("0.7 GiB more in the database");
    asked(shop, "bench", "create table ballast (piece text) with (autovacuum_enabled = off)");
    let random = "head --bytes=512M /dev/urandom | base64 --wrap=1500";
    asked(shop, "bench", &format!("copy ballast from program '{random}'"));
}

/// The answer of a database of the guest.
pub fn asked(guest: &Guest, database: &str, sql: &str) -> String {
    let user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"];
    let psql = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql];
    guest.run(&[&user[..], &psql[..]].concat()).trim().to_owned()
}

/// What the database acknowledged so far.
pub fn acknowledged(guest: &Guest) -> u64 {
    guest.read(ACKNOWLEDGED).trim().parse().expect("a number")
}

/// The numbers that the till wrote, and how often it was ended in order. They are consecutive, and none is torn.
pub fn journal(guest: &Guest) -> (u64, Vec<String>) {
    let text = guest.read(JOURNAL);
    let (mut last, mut closed) = (0, Vec::new());
    for line in text.lines() {
        match line.parse::<u64>() {
            Ok(number) => {
                assert_eq!(number, last + 1, "the till's numbers have no gap");
                last = number;
            }
            Err(_) => {
                assert_eq!(line, format!("closed after {last}"), "a line of the till's is torn");
                closed.push(line.to_owned());
            }
        }
    }
    (last, closed)
}

/// Both stacks write on.
pub fn goes_on(shop: &Guest) {
    let written = || (acknowledged(shop), shop.read(JOURNAL).len());
    let mut before = (0, 0);
    wait::until("both stacks write", OPENED, || {
        if !shop.path(JOURNAL).is_file() {
            return Ok(None);
        }
        if before == (0, 0) {
            before = written();
        }
        let now = written();
        Ok((now.0 > before.0 && now.1 > before.1).then_some(()))
    })
    .unwrap();
}

/// Containers by service, as compose lists them.
pub fn containers(guest: &Guest) -> Vec<(String, String)> {
    let words = ["docker", "compose", "--project-directory", "/srv/shop", "ps", "--all", "--format", "json"];
    let said = guest.run(&words);
    let rows = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = rows.map(|row| (text(&row, "Service"), text(&row, "State"))).collect();
    all.sort();
    all
}

/// After a window: exactly what ran runs, and nothing is left of it.
pub fn unharmed(stand: &Stand, shop: &Guest) {
    stand.step("what ran runs again, what a person stopped stays stopped");
    let wanted =
        [("aside", "exited"), ("till", "running")].map(|(one, two)| (one.to_owned(), two.to_owned()));
    assert_eq!(containers(shop), wanted);
    for unit in ["postgresql.service", "postgresql@17-main.service", "docker.service"] {
        shop.run(&["systemctl", "is-active", unit]);
    }
    goes_on(shop);
    assert!(!shop.path("/var/lib/holdfast/quiesce.json").exists(), "no marker is left");
}
