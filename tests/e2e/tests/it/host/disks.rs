//! Tests of disks through socket and sudo of the helper.

use serde_json::Value;

use super::stand::{Stand, write};

pub const SPOT: &str = "/mnt/holdfast/usb1";
/// The agent's side of the socket, written by hand: one request, one reply.
const ASK: &str = r#"runuser -u holdfast -- perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => "/run/holdfast-helper.sock") or die "$!\n"; print $s $ARGV[0]; $s->shutdown(1); print <$s>' "#;

/// Root names the disk; the agent's user mounts it through the socket, for the whole host, and unmounts it.
pub fn by_the_socket(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("root adds a disk to the helper's policy; the socket mounts it");
    let serial = machine.does(&format!("cat /sys/block/{}/loop/backing_file", stand.disk.name()));
    let target = format!(
        "[[target]]\\nname = \"usb1\"\\nuuid = \"{}\"\\nfilesystem = \"ext4\"\\nserial = \"{serial}\"",
        stand.disk.uuid
    );
    // The only setting that no real host has: a file counts as a disk here.
    machine.does(
        "sed -i 's/^transports = .*/transports = [\"loop-for-tests-only\"]/' /etc/holdfast/helper.toml",
    );
    machine.does(&format!("printf '{target}\\n' >>/etc/holdfast/helper.toml"));
    let reply = ask(stand, &mount_request(stand));
    assert_eq!(reply["how"], "mounted", "{reply}");
    stand.saw(&format!("PID 1 sees: {}", seen_by_pid_1(stand)));
    let disk = check(stand, "disk usb1");
    assert_eq!(disk["state"], "good", "{disk}");
    assert_eq!(ask(stand, r#"{"verb":"unmount","target":"usb1"}"#)["ok"], true);
    machine.refuses(&format!("grep -q ' {SPOT} ' /proc/1/mountinfo"));
    let stranger = machine.refuses(&ASK.replace("holdfast --", "nobody --").replace("print <$s>", "1"));
    assert!(stranger.contains("Permission denied"), "{stranger}");
}

/// The shipped unit cannot use sudo; with the shipped drop-in it can, and the mount is the whole host's, too.
pub fn by_sudo(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("the sudo door: not from the shipped unit, but with examples/relaxed.conf");
    let at = "/etc/systemd/system/door.service";
    machine.does(&format!("cp /usr/lib/systemd/system/agentd.service {at}; mkdir {at}.d"));
    let sudo = "sudo -n /usr/lib/holdfast/holdfast-helper mount";
    let own = format!(
        "[Service]\nType=oneshot\nNotifyAccess=none\nWatchdogSec=0\nRestart=no\nStandardInputText={}\n\
         StandardOutput=truncate:/run/door.out\nStandardError=truncate:/run/door.err\nExecStart=\nExecStart={sudo}\n",
        mount_request(stand)
    );
    write(machine, &format!("{at}.d/own.conf"), &own);
    machine.does("systemctl daemon-reload");
    machine.refuses("systemctl start door.service");
    let why = machine.does("cat /run/door.err");
    stand.saw(&format!("shipped: {}", why.lines().next().unwrap_or_default()));
    assert!(why.contains("no new privileges"), "{why}");
    machine.refuses(&format!("grep -q ' {SPOT} ' /proc/1/mountinfo"));
    machine.does(&format!(
        "cp /usr/share/doc/holdfast-agent/examples/relaxed.conf {at}.d/; systemctl daemon-reload"
    ));
    let started = machine.tries("systemctl start door.service");
    let said = machine.does("cat /run/door.out /run/door.err");
    assert!(started.status.success() && said.contains("\"how\":\"mounted\""), "{said}");
    stand.saw(&format!("relaxed: {}", seen_by_pid_1(stand)));
    another_helper(stand);
    machine.does(&format!("rm -r {at} {at}.d /run/door.*; systemctl daemon-reload"));
}

/// The sudoers file is pinned to the helper of this very package: another one in its place is not started.
fn another_helper(stand: &Stand) {
    let machine = &stand.machine;
    let (helper, status) = ("/usr/lib/holdfast/holdfast-helper", r#"echo '{"verb":"status"}'"#);
    let sudo = format!("{status} | runuser -u holdfast -- sudo -n {helper} status");
    assert!(machine.does("cat /etc/sudoers.d/holdfast-helper").contains("NOPASSWD: sha256:"));
    assert_eq!(machine.reports(&sudo)["ok"], true);
    machine.does(&format!("cp -a {helper} {helper}.kept; printf x >>{helper}"));
    let refused = machine.refuses(&sudo);
    stand.saw(&format!("another helper: {}", refused.trim()));
    assert!(refused.contains("sudo"), "{refused}");
    machine.does(&format!("mv {helper}.kept {helper}"));
    assert_eq!(machine.reports(&sudo)["ok"], true);
}

/// While the disk is out nothing can be written to its mount point; another one with its UUID is not accepted.
pub fn out_and_in(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("the disk drops, another one wears its UUID, and it returns");
    machine.does(&format!("umount --lazy {SPOT}"));
    stand.disk.pull_out();
    stand.disk.until_out(|| ());
    let gone = check(stand, "disk usb1");
    stand.saw(&format!("{}: {}", gone["state"].as_str().unwrap(), gone["detail"].as_str().unwrap()));
    assert_eq!(gone["state"], "failed");
    machine.refuses(&format!("runuser -u holdfast -- touch {SPOT}/x"));
    assert_eq!(machine.does(&format!("find {SPOT} -mindepth 1 | wc -l")), "0", "nothing on the root disk");
    stand.disk.put_in_another(&stand.folder);
    let other = ask(stand, &mount_request(stand));
    stand.saw(&format!("another drive: {} {}", other["code"], other["message"]));
    assert_eq!(other["ok"], false, "{other}");
    stand.disk.pull_out();
    stand.disk.until_out(|| ());
    stand.disk.put_in();
    let back = ask(stand, &mount_request(stand));
    assert_eq!(back["how"], "mounted", "{back}");
    stand.saw(&format!("it is back: {}", seen_by_pid_1(stand)));
}

fn mount_request(stand: &Stand) -> String {
    format!(r#"{{"verb":"mount","target":"usb1","uuid":"{}"}}"#, stand.disk.uuid)
}

pub fn ask(stand: &Stand, request: &str) -> Value {
    stand.machine.reports(&format!("{ASK}'{request}'"))
}

/// What the kernel shows to the whole host of the mount.
pub fn seen_by_pid_1(stand: &Stand) -> String {
    let line = stand.machine.does(&format!("grep ' {SPOT} ' /proc/1/mountinfo"));
    for flag in ["nosuid", "nodev", "noexec", &stand.disk.device] {
        assert!(line.contains(flag), "{flag}: {line}");
    }
    line.split(' ').skip(4).collect::<Vec<_>>().join(" ")
}

/// One line of the doctor's.
pub fn check(stand: &Stand, name: &str) -> Value {
    let report = stand.machine.reports("agentd doctor --output json || true");
    let all = report["checks"].as_array().unwrap();
    all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {report}")).clone()
}
