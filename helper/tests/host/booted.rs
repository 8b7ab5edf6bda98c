//! Test of the shipped units and sudoers file in a booted Debian.
//!
//! It shows what no reading of the units shows: that the hardening leaves the helper what it needs, and that a mount
//! made behind it is seen by PID 1.

use serde_json::Value;

use crate::access::shipped;
use crate::disks::{LoopDisk, fresh_uuid};
use crate::golden::{CAPABILITIES, SAYS};
use crate::test_host::{CALLER_UID, Host, mount_request, on_a_host, run};

const BOX: &str = "/run/box/root";
const LOG: &str = "/run/box/check/log";

/// Each line it prints is a name and what came of it.
const CHECK: &str = r#"
exec >/check/log 2>/check/errors
P=/usr/lib/holdfast/holdfast-helper
as() { local uid=$1; shift; setpriv --reuid=$uid --regid=990 --clear-groups "$@"; }
call() { as $1 env HOLDFAST_HELPER_SOCKET=$2 HOLDFAST_HELPER_CLIENT="$3" /usr/lib/holdfast/client access::a_client --exact --nocapture | grep -o '{.*'; }
ask() { echo "$1 $(call $2 /run/holdfast-helper.sock "$3")"; }
built() { echo "$1-builder $(echo "$2" | head -n 1)"; echo "$1 $(echo "$2" | tail -n 1)"; }
by_sudo() { echo "$1 $(echo "$2" | as 990 sudo -n $P $3)"; }
seen() { echo "$1 $(grep -c ' - ext4 /dev/loop' <(grep ' /mnt/holdfast/usb1 ' /proc/1/mountinfo))"; }
denied() { if echo '{"verb":"status"}' | as 990 "$@" >/dev/null 2>&1; then echo "let-in $*"; else echo "denied"; fi; }
U='{"verb":"unmount","target":"usb1"}'
S='{"verb":"status"}'
G='{"verb":"golden-build"}'
ask socket-mount 990 "$MOUNT"
seen socket-seen
ask socket-status 990 "$S"
ask socket-unmount 990 "$U"
seen socket-gone
ask socket-stranger 991 "$S"
by_sudo sudo-mount "$MOUNT" mount
seen sudo-seen
by_sudo sudo-status "$S" status
by_sudo sudo-mismatch "$S" mount
by_sudo sudo-unmount "$U" unmount
seen sudo-gone
built socket-golden "$(call 990 /run/holdfast-golden.sock "$G")"
built sudo-golden "$(echo "$G" | as 990 sudo -n $P golden-build)"
built golden-stranger "$(call 991 /run/holdfast-golden.sock "$G")"
built golden-mounts "$(call 990 /run/holdfast-golden.sock "$MOUNT")"
ask golden-elsewhere 990 "$G"
denied sudo -n $P
denied sudo -n $P mount x
denied sudo -n $P golden-build --out /etc
denied sudo -n /bin/sh
denied sudo -n LD_PRELOAD=/x $P status
denied sudo -n -E $P status
denied sudo -n -u '#-1' $P status
denied sudo -n -g disk $P status
denied sudo -n -D /root $P status
denied sudo -n -R /root $P status
denied sudo -n -e $P
echo "same-file $(echo "$S" | as 990 sudo -n /usr/lib/holdfast/../holdfast/holdfast-helper status)"
denied sudo -n /usr/lib/holdfast/client status
mkdir -p /etc/systemd/system/holdfast-helper@.service.d
printf '[Service]\nPrivateTmp=yes\n' >/etc/systemd/system/holdfast-helper@.service.d/sandbox.conf
systemctl daemon-reload
ask sandboxed 990 "$MOUNT"
seen sandboxed-seen
systemctl start variables.service
echo "variables [$(cat /check/variables)]"
journalctl --sync
echo "journal $(journalctl -t holdfast-helper -o verbose | grep -c HOLDFAST_CODE=)"
"#;

const UNIT: &str = "[Unit]\nRequires=holdfast-helper.socket holdfast-golden.socket\n\
    After=holdfast-helper.socket holdfast-golden.socket systemd-journald.service\n\
    [Service]\nType=oneshot\nExecStart=/bin/bash /check/check.sh\nExecStopPost=/bin/systemctl --no-block exit 0\n";

#[test]
fn the_shipped_units_and_sudoers_mount_for_the_whole_host() {
    on_a_host("booted::the_shipped_units_and_sudoers_mount_for_the_whole_host", |_: &Host| {
        let disk = LoopDisk::new("disk", "ext4");
        lay_out(&disk);
        let bind = format!("--bind={0}:{0}", disk.device);
        let said = run(
            "timeout",
            &[
                "60",
                "systemd-nspawn",
                "--quiet",
                "--register=no",
                "--keep-unit",
                "--private-network",
                "--directory",
                BOX,
                "--bind=/run/box/check:/check",
                &bind,
                "--boot",
                "systemd.unit=check.service",
            ],
        );
        let log = std::fs::read_to_string(LOG).unwrap_or_else(|error| panic!("{error}: {said}"));
        let errors = std::fs::read_to_string("/run/box/check/errors").unwrap();
        let of = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name} is missing: {log}{errors}")).to_owned()
        };
        let reply = |name: &str| {
            serde_json::from_str::<Value>(&of(name))
                .unwrap_or_else(|error| panic!("{name}: {error}: {log}{errors}"))
        };
        for entry in ["socket", "sudo"] {
            assert_eq!(reply(&format!("{entry}-mount"))["how"], "mounted", "{log}{errors}");
            assert_eq!(of(&format!("{entry}-seen")), "1", "PID 1 sees it: {log}{errors}");
            assert_eq!(reply(&format!("{entry}-status"))["targets"][0]["mounted"], true);
            assert_eq!(reply(&format!("{entry}-unmount"))["ok"], true, "{log}");
            assert_eq!(of(&format!("{entry}-gone")), "0", "{log}");
        }
        for entry in ["socket", "sudo"] {
            let builder = reply(&format!("{entry}-golden-builder"));
            assert_eq!(builder["words"], "build --output json --out /var/lib/vz/dump", "{log}{errors}");
            assert_eq!(
                (&builder["environment"], &builder["capabilities"]),
                (&"".into(), &CAPABILITIES.into()),
                "{log}"
            );
            assert_eq!(reply(&format!("{entry}-golden"))["ok"], true, "{log}{errors}");
        }
        assert_eq!(reply("golden-stranger")["code"], "E_PEER", "{log}");
        assert_eq!(reply("golden-mounts")["code"], "E_ARGV", "{log}");
        assert_eq!(reply("golden-elsewhere")["code"], "E_CAPS", "{log}");
        assert_eq!(reply("socket-stranger")["code"], "E_PEER", "{log}");
        assert_eq!(reply("sudo-mismatch")["code"], "E_ARGV", "{log}");
        assert_eq!(
            (reply("sandboxed")["code"].as_str(), of("sandboxed-seen").as_str()),
            (Some("E_ENV"), "0"),
            "{log}"
        );
        assert_eq!(
            log.lines().filter(|line| line.starts_with("let-in")).collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
        assert_eq!(log.lines().filter(|line| *line == "denied").count(), 12, "{log}");
        assert_eq!(
            reply("same-file")["ok"],
            true,
            "sudo compares the file, not its spelling: the same grant: {log}"
        );
        assert_eq!(of("variables"), "[]", "the helper is not started a second time: {log}{errors}");
        assert_eq!(of("journal"), "15", "one line for each call: {log}");
    });
}

/// The helper's unit, for a program that prints its environment.
fn variables_unit() -> String {
    let (_, mut unit) = shipped("systemd/holdfast-helper@.service");
    for (from, to) in [
        ("ExecStart=/usr/lib/holdfast/holdfast-helper", "ExecStart=/usr/bin/env"),
        ("Type=exec", "Type=oneshot"),
        ("StandardInput=socket", "StandardInput=null"),
        ("StandardOutput=socket", "StandardOutput=append:/check/variables"),
    ] {
        assert!(unit.contains(from), "{from}: {unit}");
        unit = unit.replace(from, to);
    }
    unit
}

/// The machine's own root file system beneath, everything that is laid on top in memory.
fn lay_out(disk: &LoopDisk) {
    // The container gets a machine id of its own.
    std::fs::write("/etc/machine-id", fresh_uuid().replace('-', "")).unwrap();
    run("install", &["-d", "/run/box", "/run/box/upper", "/run/box/work", "/run/box/check", BOX]);
    run(
        "mount",
        &["-t", "overlay", "-o", "lowerdir=/,upperdir=/run/box/upper,workdir=/run/box/work", "overlay", BOX],
    );
    let inside = |path: &str| format!("{BOX}{path}");
    run(
        "install",
        &[
            "-d",
            &inside("/usr/lib/holdfast"),
            &inside("/etc/holdfast"),
            &inside("/mnt/holdfast"),
            &inside("/var/lib/vz/dump"),
        ],
    );
    std::fs::write("/run/box/builder", SAYS).unwrap();
    run("chmod", &["755", &inside("/mnt")]);
    for (from, to, mode) in [
        ("/run/box/builder", "/usr/lib/holdfast/holdfast-golden", "755"),
        (
            shipped("systemd/holdfast-golden.socket").0.to_str().unwrap(),
            "/etc/systemd/system/holdfast-golden.socket",
            "644",
        ),
        (
            shipped("systemd/holdfast-golden@.service").0.to_str().unwrap(),
            "/etc/systemd/system/holdfast-golden@.service",
            "644",
        ),
        (env!("CARGO_BIN_EXE_holdfast-helper"), "/usr/lib/holdfast/holdfast-helper", "755"),
        (std::env::current_exe().unwrap().to_str().unwrap(), "/usr/lib/holdfast/client", "755"),
        (
            shipped("systemd/holdfast-helper.socket").0.to_str().unwrap(),
            "/etc/systemd/system/holdfast-helper.socket",
            "644",
        ),
        (
            shipped("systemd/holdfast-helper@.service").0.to_str().unwrap(),
            "/etc/systemd/system/holdfast-helper@.service",
            "644",
        ),
        (shipped("sudoers/holdfast-helper").0.to_str().unwrap(), "/etc/sudoers.d/holdfast-helper", "440"),
    ] {
        run("install", &["-m", mode, from, &inside(to)]);
    }
    let policy = format!(
        "caller_uid = {CALLER_UID}\ntransports = [\"loop-for-tests-only\"]\n\
         golden_dump = \"/var/lib/vz/dump\"\n{}",
        disk.target("usb1", "ext4")
    );
    std::fs::write(inside("/etc/holdfast/helper.toml"), policy).unwrap();
    std::fs::write(inside("/etc/systemd/system/check.service"), UNIT).unwrap();
    std::fs::write(inside("/etc/systemd/system/variables.service"), variables_unit()).unwrap();
    let user = "echo 'holdfast:x:990:990::/:/bin/sh' >>$0/passwd; echo 'holdfast:x:990:' >>$0/group; \
                echo 'holdfast:*:19000::::::' >>$0/shadow";
    run("sh", &["-ec", user, &inside("/etc")]);
    let request = mount_request("usb1", &disk.uuid);
    std::fs::write("/run/box/check/check.sh", format!("MOUNT='{request}'\n{CHECK}")).unwrap();
}
