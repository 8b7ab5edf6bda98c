//! Tests of a way into the host on a signed order.
//!
//! The agent passes orders on, the hub keeps them, sshd lets the person in, and root's program decides. The orders that
//! are refused are put down by the agent's user itself, as an agent under foreign control would.

use std::time::Duration;

use super::stand::{Stand, write};
use super::story::SOON;

const PROGRAM: &str = "/usr/lib/holdfast/holdfast-break-glass";
/// Where sshd finds the line of an open way.
const LINE: &str = "/etc/ssh/holdfast-break-glass/root";
const OFTEN: &str = "/etc/systemd/system/holdfast-break-glass.service.d/often.conf";
const WITHOUT_PATH: &str = "systemctl stop holdfast-break-glass.path";
const WITH_PATH: &str = "systemctl start holdfast-break-glass.path";
const SSH: &str = "timeout 20 ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
                   -o LogLevel=ERROR -o IdentitiesOnly=yes -i /root/glass/anna root@127.0.0.1";
/// The way of two minutes, and the guard's turns.
const LONGER_THAN_THE_WAY: Duration = Duration::from_secs(240);
const WAY: &str = "\n[ways.tunnel]\nkind = \"authorized_keys\"\nfrom = [\"127.0.0.1\"]\n";

/// `forge EDIT SIGNER CONSENTER [EDIT AFTERWARDS]`: puts an order down as the agent's user, made of the one that was
/// opened. The edits are jq's.
const FORGE: &str = r#"set -eu
cd /root/glass; rm -f forged forged.sig after
jq -c "$1" opened.payload >forged
ssh-keygen -q -Y sign -n holdfast-job -f $2 forged; mv forged.sig job.sig
ssh-keygen -q -Y sign -n holdfast-consent -f $3 forged; mv forged.sig consent.sig
jq -c "${4:-.}" forged >after
jq -n --arg payload "$(base64 -w0 after)" --arg job "$(cat job.sig)" --arg consent "$(cat consent.sig)" \
    '{schema: "holdfast.signed-job/v1", payload: $payload, signatures: [$job], consents: [$consent]}' >forged.json
"#;

/// From the settings to a session, and to an end without agent and hub. At the end a way is open.
pub fn day(stand: &Stand) {
    stand.step("break-glass");
    prepare(stand);
    is_off(stand);
    enable(stand);
    without_consent(stand);
    opened(stand);
    forged(stand, &NEVER);
    over_without_an_agent(stand);
    forged(stand, &NOT_HERE);
    left_open(stand);
}

fn prepare(stand: &Stand) {
    let machine = &stand.machine;
    write(machine, "/root/glass/forge", FORGE);
    // As shipped, only that so many orders within a minute are judged.
    write(machine, OFTEN, "[Unit]\nStartLimitIntervalSec=0\n");
    machine.does("systemctl daemon-reload");
    for key in ["anna", "acme", "mallory"] {
        machine.does(&format!("ssh-keygen -q -t ed25519 -N '' -C '' -f /root/glass/{key}"));
    }
    machine.does("cp /root/key /root/glass/ada");
}

/// As installed: no file of root's, no way in.
fn is_off(stand: &Stand) {
    let machine = &stand.machine;
    let id = order(stand, 1, "off");
    let end = watched(stand, &id);
    assert!(end.contains("failed") && end.contains("off"), "{end}");
    machine.does(&format!("test ! -e {LINE}"));
    stand.saw("as installed: the order was refused");
}

/// Root's part: the agent prints who this host is, and root adds a way, the customer's key, and sshd's lines.
fn enable(stand: &Stand) {
    let machine = &stand.machine;
    machine.does("agentd break-glass >/etc/holdfast/break-glass.toml");
    let printed = machine.does("cat /etc/holdfast/break-glass.toml");
    assert!(printed.contains("enabled = false") && printed.contains("[customers.acme]"), "{printed}");
    machine.does(&format!(
        "sed -i 's/^enabled = false/enabled = true/' /etc/holdfast/break-glass.toml; printf '%s' '{WAY}' >>/etc/holdfast/break-glass.toml; \
         echo \"acme $(cat /root/glass/acme.pub)\" >/etc/holdfast/consent-keys; \
         sed 's/10.77.0.1/127.0.0.1/' /usr/share/doc/holdfast-agent/examples/holdfast-break-glass.conf >/etc/ssh/sshd_config.d/holdfast-break-glass.conf; \
         sshd -t; systemctl reload ssh"
    ));
    stand.saw(&machine.does(&format!("{PROGRAM} check")).replace('\n', "; "));
    machine.refuses(&format!("{SSH} true"));
}

fn without_consent(stand: &Stand) {
    let machine = &stand.machine;
    let id = order(stand, 1, "unasked");
    let end = watched(stand, &id);
    assert!(end.contains("failed") && end.contains("consent"), "{end}");
    machine.does(&format!("test ! -e {LINE}"));
    stand.saw("the customer did not consent: refused");
}

/// Signed, consented to, through hub and agent: a recorded session.
fn opened(stand: &Stand) {
    let machine = &stand.machine;
    consented(stand, 2, "opened");
    stand.saw(&machine.does(&format!("{PROGRAM} tick")));
    let said = machine.does(&format!("{SSH} 'id -un; echo from within'"));
    // As on a terminal, which the recording needs.
    assert_eq!(said.replace('\r', ""), "root\nfrom within");
    machine.does("grep -rqa 'from within' /var/lib/holdfast-break-glass/recordings");
    machine.refuses(&format!("{} true", SSH.replace("/anna", "/mallory")));
    machine.until("the alert", SOON, "holdfast alert list", |said| said.contains("BREAK_GLASS_OPEN"));
    machine.does("agentd audit show --output json | grep -q break_glass_opened");
    stand.saw("a session of root: let in, recorded, in the audit, and an alert");
}

/// An order that root's program must refuse: what is wrong, the edit before the signatures, who signs and who consents, the
/// edit after them, and the code.
struct Forged {
    what: &'static str,
    edit: &'static str,
    signer: &'static str,
    consenter: &'static str,
    after: &'static str,
    code: &'static str,
}

impl Forged {
    const fn new(what: &'static str, edit: &'static str, code: &'static str) -> Self {
        Self { what, edit, signer: "ada", consenter: "acme", after: ".", code }
    }
}

/// Refused before anything of the host's settings is looked at.
const NEVER: [Forged; 8] = [
    Forged::new("another host", r#".host.name = "box2""#, "NOT_YOURS"),
    Forged::new("another machine", r#".host.fingerprint = "0000-0000-0000-0000-0000""#, "HOST_KEY_CHANGED"),
    Forged::new("another life of it", ".host_epoch += 1", "JOB_EPOCH"),
    Forged::new(
        "over",
        r#".not_before = "2026-01-01T00:00:00Z" | .expires_at = "2026-01-01T01:00:00Z""#,
        "JOB_EXPIRED",
    ),
    Forged::new(
        "not yet",
        r#".not_before = "2099-01-01T00:00:00Z" | .expires_at = "2099-01-01T01:00:00Z""#,
        "JOB_NOT_YET",
    ),
    Forged { signer: "mallory", ..Forged::new("signed by a stranger", ".", "KEY_UNKNOWN") },
    Forged { after: ".args.minutes = 480", ..Forged::new("changed after the signatures", ".", "SIGNATURE") },
    Forged::new("another verb", r#".verb = "refresh""#, "VERSION"),
];

/// Refused by root's settings, and looked at only while no way is open.
const NOT_HERE: [Forged; 3] = [
    Forged { consenter: "mallory", ..Forged::new("consented by a stranger", ".", "KEY_UNKNOWN") },
    Forged::new("a way that root did not name", r#".args.way = "other""#, "NOT_FOUND"),
    Forged::new("longer than root lets a way be", ".args.minutes = 480", "RANGE"),
];

/// What an agent could put down. Nothing is opened, and what is open stays as it is.
fn forged(stand: &Stand, orders: &[Forged]) {
    let machine = &stand.machine;
    let open = format!("sha256sum {LINE} 2>&1 || true");
    let before = machine.does(&open);
    // Else each would be a replay of what was opened, whatever is wrong with it.
    let other =
        r#".nonce = "22222222222222222222222222222222" | .job_id = "01906f3c-6b1f-7c1d-9d0a-0000000000aa""#;
    machine.does(WITHOUT_PATH);
    for Forged { what, edit, signer, consenter, after, code } in orders {
        machine.does(&format!("sh /root/glass/forge '{other} | {edit}' {signer} {consenter} '{after}'"));
        let said = put_down(stand, "/root/glass/forged.json");
        assert!(said.starts_with(&format!("refused: {code}: ")), "{what}: {said}");
        assert_eq!(machine.does(&open), before, "{what}");
        stand.saw(&format!("{what:32} {said}"));
    }
    machine.does(WITH_PATH);
}

/// The agent's user writes the order; what root's program says of it. The path unit is stopped: it would judge the same
/// file, and each answer must belong to its order.
fn put_down(stand: &Stand, file: &str) -> String {
    let machine = &stand.machine;
    machine.does("rm -f /var/lib/holdfast/break-glass/*");
    let unit = "holdfast-break-glass.service";
    machine.does(&format!(
        "install -o holdfast -g holdfast -m 600 {file} /var/lib/holdfast/break-glass/order.json"
    ));
    // The unit is forgotten as soon as it has ended, and its invocation with it.
    let journal = "journalctl --no-pager --quiet";
    let from = machine.does(&format!("{journal} --lines=0 --show-cursor | sed -n 's/^-- cursor: //p'"));
    machine.does(&format!("systemctl start {unit}; journalctl --sync"));
    let said = machine.does(&format!("{journal} --output=cat --after-cursor='{from}' --unit={unit}"));
    machine.does("rm -f /var/lib/holdfast/break-glass/*");
    said.lines()
        .rfind(|line| line.contains("refused") || line.contains("open"))
        .unwrap_or_default()
        .to_owned()
}

/// The time ends while neither agent nor hub run, the guard was killed, and a session is under way.
fn over_without_an_agent(stand: &Stand) {
    let machine = &stand.machine;
    machine.does("systemctl kill --kill-whom=all --signal=KILL agentd hubd; systemctl stop agentd hubd");
    let long = SSH.replace("timeout 20", "timeout 300");
    machine.does(&format!("{{ {long} 'sleep 4711' >/dev/null 2>&1 & }}; disown -a"));
    machine.until("the session", SOON, "pgrep -xf 'sleep 4711'", |said| !said.is_empty());
    machine.does("systemctl kill --signal=KILL holdfast-break-glass-guard");
    let line = format!("test ! -e {LINE} && echo closed");
    machine.until("the end of the way", LONGER_THAN_THE_WAY, &line, |said| said == "closed");
    machine
        .until("the end of the session", SOON, "pgrep -xf 'sleep 4711' || echo over", |said| said == "over");
    machine.refuses(&format!("{SSH} true"));
    machine.does(WITHOUT_PATH);
    let said = put_down(stand, "/root/glass/opened.json");
    machine.does(WITH_PATH);
    assert!(said.contains("refused"), "the same order once more: {said}");
    stand.saw(&format!("closed with agent and hub dead; the same order once more: {said}"));
    machine.does("systemctl start hubd agentd");
    machine.until("the audit", SOON, "agentd audit show --output json", |said| {
        said.contains("break_glass_closed")
    });
}

/// For the reboot that comes.
fn left_open(stand: &Stand) {
    consented(stand, 60, "left-open");
    stand.machine.does(&format!("{SSH} true"));
}

/// In a container the clock since boot is that of the machine beneath, so a reboot ends a way.
pub fn after_reboot(stand: &Stand) {
    let machine = &stand.machine;
    machine.does(&format!("test ! -e {LINE}"));
    machine.refuses(&format!("{SSH} true"));
    stand.saw(&format!("break-glass: {}", machine.does(&format!("{PROGRAM} tick"))));
    let log = machine.does(&format!("{PROGRAM} log"));
    stand.saw(&format!("{} lines in its log, whole", log.lines().count()));
    machine.does(&format!("rm -r $(dirname {OFTEN}); systemctl daemon-reload"));
}

/// Takes away what a purge leaves to a person.
pub fn forget(stand: &Stand) {
    stand
        .machine
        .does("test -s /var/lib/holdfast-break-glass/log.jsonl; rm -r /var/lib/holdfast-break-glass");
    stand.machine.does("rm /etc/ssh/sshd_config.d/holdfast-break-glass.conf");
}

/// An order of the operator; submitted. Gives the job.
fn order(stand: &Stand, minutes: u32, name: &str) -> String {
    signed(stand, minutes, name);
    submit(stand, name)
}

/// The same with the customer's consent, and it must open.
fn consented(stand: &Stand, minutes: u32, name: &str) {
    let machine = &stand.machine;
    signed(stand, minutes, name);
    for line in [
        format!("holdfast job payload {name}.json --out {name}.payload"),
        format!("ssh-keygen -q -Y sign -n holdfast-consent -f acme {name}.payload"),
        format!("holdfast job consent {name}.json {name}.payload.sig"),
    ] {
        machine.does(&format!("cd /root/glass; {line}"));
    }
    let id = submit(stand, name);
    let end = watched(stand, &id);
    assert!(end.contains("\"done\""), "{end}");
}

fn signed(stand: &Stand, minutes: u32, name: &str) {
    stand.machine.does(&format!(
        "cd /root/glass; holdfast sign box1 --break-glass tunnel --minutes {minutes} --let-in anna.pub --key ada \
         --confirm box1 --reason 'a day of tests' --out {name}.json"
    ));
}

fn submit(stand: &Stand, name: &str) -> String {
    let machine = &stand.machine;
    machine.does(&format!("cd /root/glass; holdfast job submit box1 {name}.json"));
    machine.does(&format!("jq -r .payload /root/glass/{name}.json | base64 -d | jq -r .job_id"))
}

fn watched(stand: &Stand, job: &str) -> String {
    let output = stand.machine.tries(&format!("holdfast job watch box1 {job} --timeout 120 --output json"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
