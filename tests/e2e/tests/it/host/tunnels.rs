//! A tunnel's token, restarts, and traffic without the agent.
//!
//! The stand-in tunnel is a service of its own, which forwards to the hub and wants a token to start. The settings name it
//! as an operator would.

use super::stand::{Stand, write};
use super::story::{self, SOON};

/// Forwards a port to another, each connection in a process of its own.
const FORWARDER: &str = r#"use IO::Socket::INET; use IO::Select; $SIG{CHLD} = 'IGNORE';
my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1:7001', Listen => 8, ReuseAddr => 1) or die $!;
while (my $near = $door->accept) {
    next if fork;
    my $far = IO::Socket::INET->new(PeerAddr => '127.0.0.1:8440') or exit 1;
    my $both = IO::Select->new($near, $far);
    while (my @ready = $both->can_read) {
        for my $from (@ready) {
            my $to = $from == $near ? $far : $near;
            exit 0 unless sysread($from, my $piece, 65536);
            syswrite($to, $piece);
        }
    }
}
"#;

const UNIT: &str = r#"[Unit]
Description=A stand-in for a tunnel
[Service]
LoadCredential=tunnel-token:/var/lib/holdfast-tunnels/tokens/stand-in
ExecStart=/bin/sh -c 'test -s "$CREDENTIALS_DIRECTORY/tunnel-token" && exec perl /root/forward.pl'
"#;

const SETTINGS: &str = r#"
[[tunnel]]
name = "stand-in"
unit = "stand-in.service"
probe = "tcp://127.0.0.1:7001"
token = "signed_job"
"#;

const FOLDER: &str = "/var/lib/holdfast-tunnels";
const TOKEN: &str = "eyJhIjoic3RhbmQtaW4ifQ";

/// Through the tunnel to the hub, and back.
const TRAFFIC: &str =
    "curl --silent --insecure --max-time 20 --output /dev/null https://127.0.0.1:7001/healthz && echo there";

fn state_is(stand: &Stand, state: &str) -> String {
    let line = "agentd status --output json | jq -c '.sections.agent.tunnels[0]'";
    let wanted = format!("\"state\":\"{state}\"");
    stand.machine.until(&format!("the tunnel to be {state}"), SOON, line, |said| said.contains(&wanted))
}

/// The tunnel's unit, and its lines in the settings; gives the command of the setup that was run.
fn lay_down(stand: &Stand) -> String {
    let machine = &stand.machine;
    stand.step("[[tunnel]] in agent.toml; agentd setup");
    write(machine, "/root/forward.pl", FORWARDER);
    write(machine, "/etc/systemd/system/stand-in.service", UNIT);
    machine.does("systemctl daemon-reload");
    machine.does(&format!("cat >>/etc/holdfast/agent.toml <<'SETTINGS'{SETTINGS}SETTINGS"));
    let setup = story::setup(stand);
    assert_eq!(machine.reports(&format!("{setup} --yes"))["outcome"], "done");
    setup
}

/// An enrolment without an invite. The operator compares one fingerprint and hands the tunnel its token with the approval;
/// the order waits for the first check-in. Another fingerprint hands over nothing and approves nothing.
pub fn with_the_enrolment(stand: &Stand) {
    let machine = &stand.machine;
    lay_down(stand);
    stand.step("agentd enroll --request; holdfast host approve --tunnel-token stand-in");
    story::log_in(stand);
    let pin = machine
        .does("journalctl --unit hubd --output cat | grep --only-matching 'leaf/sha256:[0-9a-f]*' | head -1");
    // It asks, and is told to wait.
    let enroll = format!("agentd enroll --request https://127.0.0.1:8440 --ca-pin {pin}");
    let asked = machine.does(&format!("timeout 10 {enroll} 2>&1 || test $? = 124"));
    let shown = |word: &&str| word.starts_with("request/sha256:");
    let fingerprint = asked.split_whitespace().find(shown).unwrap_or_else(|| panic!("{asked}"));
    stand.saw(fingerprint);
    let requests = machine.reports("holdfast host requests --output json");
    let id = requests[0]["id"].as_str().unwrap();
    let approve = |fingerprint: &str| {
        format!(
            "printf {TOKEN} | holdfast host approve {id} box1 --fingerprint {fingerprint} --tunnel-token stand-in \
             --key /root/key --confirm box1 --reason 'with the enrolment' --output json"
        )
    };
    let other = format!("request/sha256:{}", "ab".repeat(32));
    stand.saw(machine.refuses(&approve(&other)).lines().next().unwrap_or_default());
    assert_eq!(machine.reports("holdfast host requests --output json")[0]["state"], "pending");
    assert_eq!(machine.reports(&approve(fingerprint))["state"], "approved");
    machine.does(&format!("timeout 120 {enroll} 2>&1"));
    machine.refuses(&format!("test -s {FOLDER}/tokens/stand-in"));
    machine.refuses("systemctl start stand-in; sleep 1; systemctl is-active stand-in");
    machine.does("systemctl start agentd");
    let line = format!("cat {FOLDER}/tokens/stand-in");
    machine.until("the token", SOON, &line, |said| said == TOKEN);
    machine.until("traffic", SOON, TRAFFIC, |said| said.ends_with("there"));
    stand.saw("the token came with the first check-in, and the tunnel works");
    machine.refuses(&format!("grep -r {TOKEN} /var/lib/holdfast/agent.db* /var/lib/holdfast-hub"));
    ends(stand);
    // What comes after it knows no tunnel.
    machine.does("sed -i '/^\\[\\[tunnel\\]\\]/,$d' /etc/holdfast/agent.toml");
    let setup = story::setup(stand);
    assert_eq!(machine.reports(&format!("{setup} --yes"))["outcome"], "done");
    machine.does("systemctl restart agentd");
}

/// Named in the settings: root's list, the agent's files, the unit that hears it.
pub fn named(stand: &Stand) {
    let machine = &stand.machine;
    let setup = lay_down(stand);
    assert_eq!(
        machine.reports(&format!("{setup} --dry-run"))["to_do"],
        0,
        "a second run finds nothing to do"
    );
    assert_eq!(machine.does("tail -n 1 /etc/holdfast/tunnels"), "stand-in stand-in.service");
    assert_eq!(machine.does("systemctl is-active holdfast-tunnel-restart@stand-in.path"), "active");
    let judged = machine.does(
        "systemd-analyze security --no-pager --threshold=20 holdfast-tunnel-restart@stand-in.service | tail -1",
    );
    stand.saw(judged.trim_start_matches("→ "));
    machine.refuses("systemctl start stand-in; sleep 1; systemctl is-active stand-in");
    // As the agent's user, in the agent's own sandbox: systemd answers it.
    stand.saw(&state_is(stand, "down"));
    let hub = "holdfast host show box1 --output json | jq -c '.sections.conditions'";
    machine.until("the missing token", SOON, hub, |said| said.contains("TUNNEL_TOKEN_MISSING"));
}

/// The token comes by a signed job, and the tunnel that failed without it is restarted by root's service.
pub fn token(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("holdfast sign box1 --tunnel-token stand-in");
    let signed = machine.reports(&format!(
        "printf {TOKEN} | holdfast sign box1 --tunnel-token stand-in --recipient \"$(runuser -u holdfast -- agentd storage key)\" \
         --key /root/key --confirm box1 --reason 'its first token' --submit --output json"
    ));
    let job = signed["job"].as_str().unwrap();
    let end = machine.reports(&format!("holdfast job watch box1 {job} --timeout 120 --output json"));
    assert_eq!(end["report"]["state"], "done", "{end:#}");
    assert_eq!(machine.does(&format!("cat {FOLDER}/tokens/stand-in")), TOKEN);
    stand.saw(&state_is(stand, "up"));
    machine.until("traffic", SOON, TRAFFIC, |said| said.ends_with("there"));
    let result = machine.until("root's word", SOON, &format!("cat {FOLDER}/results/stand-in"), |said| {
        said.ends_with("restarted")
    });
    stand.saw(&result);
    machine.refuses(&format!("grep -r {TOKEN} /var/lib/holdfast/agent.db* /var/lib/holdfast-hub"));
}

/// What the agent's user can do there: ask, and nothing else.
pub fn bounds(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("the agent's user in root's folders of tunnels");
    let agent = |line: &str| format!("runuser -u holdfast -- sh -c '{line}'");
    for line in [
        format!("touch {FOLDER}/requests/other"),
        format!("rm {FOLDER}/requests/stand-in"),
        format!("ln -sf /etc/shadow {FOLDER}/tokens/stand-in"),
        format!("cat {FOLDER}/tokens/stand-in"),
        format!("echo x >{FOLDER}/results/stand-in"),
        "echo sshd ssh.service >>/etc/holdfast/tunnels".to_owned(),
        "systemctl restart stand-in".to_owned(),
    ] {
        machine.refuses(&agent(&line));
    }
    // Whatever it writes is no name of a unit, and what a person stopped stays stopped.
    machine.does("systemctl stop stand-in");
    machine.does(&agent(&format!("echo ssh.service >{FOLDER}/requests/stand-in")));
    let result = machine
        .until("root's word", SOON, &format!("cat {FOLDER}/results/stand-in"), |said| said.ends_with("left"));
    stand.saw(&result);
    machine.refuses("systemctl is-active stand-in");
    state_is(stand, "stopped");
    machine.does("systemctl start stand-in");
    state_is(stand, "up");
}

/// Traffic goes on while the agent is dead.
pub fn without_the_agent(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("kill -KILL agentd: the tunnel carries on");
    let process = "systemctl show --property=MainPID,NRestarts --value stand-in";
    let before = machine.does(process);
    // Nothing starts it again meanwhile.
    let drop_in = "/run/systemd/system/agentd.service.d";
    machine.does(&format!(
        "mkdir -p {drop_in}; printf '[Service]\\nRestart=no\\n' >{drop_in}/no-restart.conf; systemctl daemon-reload"
    ));
    machine.does("kill -KILL $(systemctl show --property=MainPID --value agentd)");
    machine.until("the agent's end", SOON, "systemctl is-active agentd || true", |said| said == "failed");
    for _ in 0..5 {
        assert!(machine.does(TRAFFIC).ends_with("there"));
    }
    assert_eq!(machine.does(process), before);
    machine.does(&format!(
        "rm {drop_in}/no-restart.conf; systemctl daemon-reload; systemctl reset-failed agentd; systemctl start agentd"
    ));
    state_is(stand, "up");
}

/// The stand-in goes; the settings still name it, until `setup --remove`.
pub fn ends(stand: &Stand) {
    let machine = &stand.machine;
    machine.does("systemctl stop stand-in; rm /etc/systemd/system/stand-in.service; systemctl daemon-reload");
    machine.does("systemctl reset-failed 2>&1 || true");
}
