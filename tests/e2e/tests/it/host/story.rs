//! The chapters of the host tests, as typed commands.

use std::time::Duration;

use e2e::document::{Ground, guest};
use serde_json::{Value, json};

use super::guest_apt;
use super::inventory::{self, Inventory};
use super::stand::{Stand, write};

/// The bound for what the host does by itself.
pub const SOON: Duration = Duration::from_secs(120);
/// All options of `agentd setup`.
const CHOICES: &str = "--storage tank --bulk-storage tank --backup-storage backup2 --vmid-range 5000-5999 --listen 127.66.0.1:8443 --operators /root/operators";

/// A Debian and its Proxmox, before any of ours: a purge must lead back to this state.
pub fn first_boot(stand: &mut Stand) -> Inventory {
    stand.step("a Debian boots");
    stand.machine.boot();
    let release = stand.machine.does(
        ". /etc/os-release; echo $PRETTY_NAME; systemctl --version | head -1; sudo --version | head -1",
    );
    stand.saw(&release.replace('\n', ", "));
    assert!(release.contains("trixie"), "{release}");
    assert_eq!(stand.machine.does("systemctl is-system-running"), "running");
    stand.machine.until("Proxmox", SOON, "pvesh get /version --output-format json", |said| {
        said.contains("\"version\"")
    });
    stand.saw(&format!(
        "Proxmox VE {}",
        stand.machine.reports("pvesh get /version --output-format json")["version"]
    ));
    let before = inventory::take(&stand.machine.path("/"));
    stand.saw(&format!("{} files and folders", before.len()));
    before
}

/// The guest's own package is installed and removed, and is never installed together with the agent's: both keep
/// lasting data in the same folder.
pub fn guest_package(stand: &Stand, before: &Inventory) {
    let machine = &stand.machine;
    stand.step("apt install ./holdfast-guest.deb, and the agent's beside it");
    let (guest, agent) = (stand.package("holdfast-guest"), stand.package("holdfast-agent"));
    let install = "apt-get install --quiet --yes --no-install-recommends";
    let both = machine.refuses(&format!("{install} {agent} {guest} 2>&1"));
    assert!(both.contains("Conflicts: holdfast-"), "{both}");
    machine.refuses("dpkg-query -W holdfast-agent holdfast-guest");
    machine.does(&format!("{install} {guest} 2>&1"));
    assert_eq!(machine.does("systemctl is-enabled guestd"), "enabled");
    stand
        .saw(&machine.does("systemd-analyze security --no-pager guestd.service | tail -1; guestd --version"));
    let copy_of = machine.refuses(&format!("{install} --no-remove {agent} 2>&1"));
    stand.saw(copy_of.lines().rfind(|line| line.starts_with("E: ")).unwrap_or(&copy_of));
    let copy_of = machine.refuses(&format!("dpkg --install {agent} 2>&1"));
    assert!(copy_of.contains("conflict"), "{copy_of}");
    guest_apt::is_judged(stand);
    machine.does("test -s /usr/bin/guestd; apt-get purge --quiet --yes holdfast-guest holdfast-agent 2>&1");
    assert_eq!(inventory::differences(before, &inventory::take(&machine.path("/"))), Vec::<String>::new());
}

/// `apt install ./…`.
pub fn install(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("apt install ./holdfast-agent.deb ./holdfast-hub.deb ./holdfast-cli.deb");
    let packages =
        ["holdfast-agent", "holdfast-hub", "holdfast-cli"].map(|name| stand.package(name)).join(" ");
    let said =
        machine.does(&format!("apt-get install --quiet --yes --no-install-recommends {packages} 2>&1"));
    for bad in ["dpkg: error", "warning:", "WARNING", "Failed"] {
        assert!(!said.contains(bad), "{said}");
    }
    for unit in [
        "hubd.service",
        "holdfast-hardware.timer",
        "holdfast-proxmox-tokens.timer",
        "holdfast-updates.timer",
        "holdfast-helper.socket",
        "holdfast-golden.socket",
        "holdfast-golden-publish.socket",
        "holdfast-break-glass.path",
        "holdfast-break-glass-guard.path",
    ] {
        assert_eq!(machine.does(&format!("systemctl is-active {unit}")), "active", "{unit}");
    }
    assert_eq!(machine.does("systemctl is-enabled agentd"), "enabled");
    assert!(
        machine.refuses("systemctl is-enabled holdfast-golden-build.timer").contains("disabled"),
        "a host builds images by itself where somebody says so"
    );
    assert!(
        machine.refuses("systemctl is-active agentd").contains("inactive"),
        "it waits for setup and enrolment"
    );
    assert_eq!(
        machine.does("stat -c '%U %G %a' /var/lib/holdfast /var/lib/holdfast-hub"),
        "holdfast holdfast 700\nholdfast-hub holdfast-hub 700"
    );
    assert_eq!(machine.does("stat -c '%U %a' /etc/sudoers.d/holdfast-helper"), "root 440");
    machine.does("visudo --check --quiet");
    stand.saw(&machine.does("getent passwd holdfast holdfast-hub | cut -d: -f1,3,6,7 | tr '\\n' ' '"));
    for (unit, bound) in [
        ("agentd", 15),
        ("hubd", 15),
        ("holdfast-helper@x", 30),
        ("holdfast-golden@x", 40),
        ("holdfast-golden-build", 40),
        ("holdfast-golden-publish@x", 15),
        ("holdfast-agent-gate", 20),
        ("holdfast-hardware", 20),
        ("holdfast-break-glass", 15),
        ("holdfast-break-glass-guard", 15),
        ("holdfast-break-glass-boot", 15),
        ("holdfast-updates", 10),
        ("holdfast-tunnel-restart@x", 20),
    ] {
        let judged = machine.does(&format!(
            "systemd-analyze security --no-pager --threshold={bound} {unit}.service | tail -1"
        ));
        stand.saw(judged.trim_start_matches("→ "));
    }
    gate(stand);
}

/// Before a first release the verdict has nothing to watch and is skipped, not failed.
fn gate(stand: &Stand) {
    let machine = &stand.machine;
    let unit = "holdfast-agent-gate.service";
    let show = format!("systemctl show --property=ConditionResult --property=Result {unit}");
    let said = machine.does(&format!("systemctl start {unit} 2>&1 || true; {show}"));
    assert!(said.contains("ConditionResult=no") && said.contains("Result=success"), "{said}");
    let said = machine.does("/usr/lib/holdfast/holdfast-agent-gate status");
    assert!(said.contains("no release was confirmed"), "{said}");
    stand.saw(&format!("{unit}: left out until a release is taken"));
}

/// The line of `agentd setup`, with all its choices.
pub fn setup(stand: &Stand) -> String {
    let name = stand.golden.name().unwrap();
    let golden =
        format!("--golden {},backup2:backup/{name},{}/{name}", stand.golden.version, super::proxmox::DUMP);
    format!("agentd setup {CHOICES} {golden} --golden-dump backup2,{} --output json", super::proxmox::DUMP)
}

/// `agentd setup`: shown, done, and nothing left to do.
pub fn set_up(stand: &Stand) {
    let machine = &stand.machine;
    let setup = setup(stand);
    stand.step("an operator's key; agentd setup --dry-run");
    machine.does("ssh-keygen -q -t ed25519 -N '' -C ada -f /root/key; echo \"ada $(cat /root/key.pub)\" >/root/operators");
    let before = inventory::take(&machine.path("/"));
    let shown = machine.reports(&format!("{setup} --dry-run"));
    assert_eq!(shown["outcome"], "planned");
    stand.saw(&format!("{} to do", shown["to_do"]));
    let mut differences = inventory::differences(&before, &inventory::take(&machine.path("/")));
    // The hub runs, and writes its database meanwhile.
    differences.retain(|line| !line.contains("var/lib/holdfast-hub/"));
    assert_eq!(differences, Vec::<String>::new());
    assert!(!machine.does("pvesh get /access/users --output-format json").contains("holdfast@pve"));

    stand.step("agentd setup --print | sh; agentd setup --remove --print | sh");
    machine.does(&format!("{setup} --print >/root/setup.sh; sh /root/setup.sh; sh /root/setup.sh"));
    assert_eq!(machine.reports(&format!("{setup} --dry-run"))["to_do"], 0, "the script does the same");
    machine.does("agentd setup --remove --print >/root/remove.sh; sh /root/remove.sh; sh /root/remove.sh");
    is_taken_away(stand);

    stand.step("agentd setup --yes, twice");
    assert_eq!(machine.reports(&format!("{setup} --yes"))["outcome"], "done");
    assert_eq!(machine.reports(&format!("{setup} --yes"))["to_do"], 0, "a second run finds nothing to do");
    let dump = format!("golden_dump = \"{}\"", super::proxmox::DUMP);
    assert_eq!(machine.does("grep golden_dump /etc/holdfast/helper.toml"), dump);
    // As the agent's user, through the shipped socket, to the builder, which has no Debian to unpack here.
    let refused = machine.refuses("runuser -u holdfast -- agentd golden build");
    stand.saw(&format!("agentd golden build: {}", refused.lines().last().unwrap_or_default()));
    assert!(refused.contains("fetching and unpacking Debian") && refused.contains("mmdebstrap"), "{refused}");
    let tokens = machine.reports("pvesh get /access/users/holdfast@pve/token --output-format json");
    stand.saw(&format!("tokens: {}", list(&tokens, "tokenid")));
    let secrets = machine.does("stat -c '%U %a' /var/lib/holdfast/secrets/proxmox-*");
    assert_eq!(secrets, ["holdfast 600"; 3].join("\n"));
}

/// The operator's command knows the hub.
pub fn log_in(stand: &Stand) {
    stand.machine.does("holdfast login https://127.0.0.1:8440 --ca-file /var/lib/holdfast-hub/ca.pem --token-file /var/lib/holdfast-hub/admin-token");
}

/// The invite, the identity, the service, a doctor without findings.
pub fn enrol(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("holdfast host invite box1; agentd enroll; systemctl start agentd");
    log_in(stand);
    let invite = machine.reports("holdfast host invite box1 --output json");
    write(machine, "/root/invite", invite["code"].as_str().unwrap());
    machine.does(
        "chown holdfast /root/invite; install -o holdfast -m 600 /root/invite /run/invite; rm /root/invite",
    );
    machine.does("agentd enroll --invite-file /run/invite; rm -f /run/invite");
    machine.does("systemctl start agentd");
    machine
        .until("the host at the hub", SOON, "holdfast host list --output json", |said| said.contains("box1"));

    stand.step("agentd doctor");
    let report = machine.reports("agentd doctor --output json || true");
    for check in report["checks"].as_array().unwrap() {
        stand.saw(&format!("{:8} {}: {}", word(check, "state"), word(check, "name"), word(check, "detail")));
    }
    assert_eq!(report["failed"], 0);
}

/// A guest by the hub's document.
pub fn provision(stand: &Stand) {
    stand.step("holdfast desired apply box1: one guest");
    apply(stand, &json!([]), "the first guest");
    stand.saw(&guest_is_well(stand));
}

/// A document with the one guest, and with this storage.
pub fn apply(stand: &Stand, storage: &Value, reason: &str) {
    let ground = Ground {
        network: "127.66.0".to_owned(),
        prefix: 8,
        gateway: None,
        golden: stand.golden.version.clone(),
    };
    let guests = [guest(&ground, 1, "web", "acme")];
    let document = json!({ "poll_interval_s": 5, "guests": guests, "storage": storage });
    write(&stand.machine, "/root/desired.json", &document.to_string());
    stand.machine.does(&format!("holdfast desired apply box1 /root/desired.json --yes --reason '{reason}'"));
}

/// Waits until the hub has a report that the guest and its controller run.
pub fn guest_is_well(stand: &Stand) -> String {
    let line = "holdfast guest list box1 --output json";
    let seen = stand.machine.until("the guest", SOON, line, |said| {
        serde_json::from_str::<Value>(said).is_ok_and(|list| guests(&list).iter().any(well))
    });
    let list: Value = serde_json::from_str(&seen).unwrap();
    let web = &guests(&list)[0];
    format!("{} in VMID {}, {}, {}", word(web, "name"), web["vmid"], word(web, "status"), word(web, "run"))
}

/// `setup --remove`, `apt remove`, `apt purge`.
pub fn leave(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("agentd setup --remove");
    machine.does("systemctl stop agentd");
    let removed = machine.reports("agentd setup --remove --yes --output json");
    assert_eq!(removed["outcome"], "done");
    is_taken_away(stand);
    let lines = machine.does("ls /var/lib/pve-sim/lxc");
    stand.saw(&format!("the guest is untouched: {lines}"));
    assert_eq!(lines, "5000.conf");

    stand.step("apt remove: what was known stays");
    machine.does("apt-get remove --quiet --yes holdfast-agent holdfast-hub holdfast-cli 2>&1");
    machine.refuses("command -v agentd hubd holdfast");
    machine.does("test -s /var/lib/holdfast/agent.db -a -s /var/lib/holdfast-hub/admin-token");

    stand.step("apt purge: nothing stays");
    machine.does("apt-get purge --quiet --yes holdfast-agent holdfast-hub 2>&1");
}

/// The host is as it was before, and is switched off.
pub fn nothing_is_left(stand: &mut Stand, before: &Inventory) {
    let machine = &stand.machine;
    assert_eq!(inventory::differences(before, &inventory::take(&machine.path("/"))), Vec::<String>::new());
    let units = machine.does(
        "systemctl list-unit-files --no-legend 'agentd*' 'hubd*' 'holdfast*' || true; systemctl --failed --no-legend",
    );
    assert_eq!(units, "", "no unit is left");
    let users = machine.does("getent passwd holdfast holdfast-hub | cut -d: -f1 | tr '\\n' ' '");
    stand.saw(&format!(
        "users stay, as Debian has it, so that their numbers are not given to others: {users}"
    ));
    stand.machine.off();
}

/// Nothing that `setup` made is left, except what it reports to leave.
fn is_taken_away(stand: &Stand) {
    let machine = &stand.machine;
    for list in ["users", "acl", "roles"] {
        let left = machine.does(&format!("pvesh get /access/{list} --output-format json"));
        assert!(!left.contains("holdfast") && !left.contains("\"Hf"), "{list}: {left}");
    }
    assert_eq!(machine.does("find /var/lib/holdfast/secrets -name 'proxmox-*'; cd /etc/holdfast; ls agent.toml operators policy.toml tunnels 2>/dev/null || true"), "");
    for unit in [
        "agentd.service",
        "holdfast-hardware.timer",
        "holdfast-proxmox-tokens.timer",
        "holdfast-updates.timer",
        "holdfast-helper.socket",
        "holdfast-golden.socket",
        "holdfast-golden-publish.socket",
    ] {
        machine.refuses(&format!("systemctl is-enabled {unit}"));
    }
}

fn well(guest: &Value) -> bool {
    guest["status"] == "managed" && guest["run"] == "running" && !guest["controller"].is_null()
}

fn guests(list: &Value) -> Vec<Value> {
    list.get("items").unwrap_or(list).as_array().cloned().unwrap_or_default()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn list(value: &Value, key: &str) -> String {
    value.as_array().into_iter().flatten().map(|item| word(item, key)).collect::<Vec<_>>().join(", ")
}
