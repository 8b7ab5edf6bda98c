//! Tests of the shipped units and example settings.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::path::PathBuf;

fn unit_path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../systemd")).join(name)
}

fn unit() -> (PathBuf, String) {
    let path = unit_path("agentd.service");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Every value of a key, in order.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.split_once('=')).filter(|(k, _)| *k == key).map(|(_, v)| v).collect()
}

#[test]
fn it_is_no_one_and_can_become_no_one_else() {
    let (_, text) = unit();
    assert_eq!(values(&text, "User"), ["holdfast"]);
    assert_eq!(values(&text, "CapabilityBoundingSet"), [""]);
    assert_eq!(values(&text, "AmbientCapabilities"), [""]);
    assert_eq!(values(&text, "NoNewPrivileges"), ["yes"]);
    assert_eq!(values(&text, "LimitCORE"), ["0"]);
    assert_eq!(values(&text, "UMask"), ["0077"]);
    assert!(!text.contains("sudo"));
    // Besides its own folder: where disks are mounted. The top folders of these are root's.
    // Of tunnels it may write files that root made: these folders are root's, too.
    assert_eq!(
        values(&text, "ReadWritePaths"),
        ["-/mnt/holdfast", "-/var/lib/holdfast-tunnels/requests -/var/lib/holdfast-tunnels/tokens"]
    );
    // It asks systemd about tunnels by its socket, as any user may.
    assert!(values(&text, "RestrictAddressFamilies").concat().contains("AF_UNIX"));
}

#[test]
fn what_does_not_mend_itself_is_not_tried_again() {
    let (_, text) = unit();
    let prevented: Vec<u8> = values(&text, "RestartPreventExitStatus")
        .concat()
        .split(' ')
        .map(|code| code.parse().unwrap())
        .collect();
    assert_eq!(
        prevented,
        [
            agentd::cli::run::RunCommandError::from(agentd::port::privilege::PrivilegeError::Root)
                .exit_code(),
            agentd::run::RunError::NotEnrolled.exit_code(),
        ]
    );
    assert_eq!(values(&text, "Restart"), ["always"]);
    assert_eq!(values(&text, "Type"), ["notify"]);
}

/// The bound of the design is 1.5; systemd counts in tenths.
#[test]
fn systemd_finds_the_daemons_as_closed_as_the_design_asks() {
    for unit in ["agentd.service", "hubd.service"] {
        judge(unit, 15);
    }
}

#[expect(clippy::disallowed_methods, reason = "systemd-analyze judges the units")]
fn judge(unit: &str, tenths: u8) {
    let judged = std::process::Command::new("systemd-analyze")
        .args(["security", "--offline=true", &format!("--threshold={tenths}"), "--no-pager"])
        .arg(unit_path(unit))
        .output();
    match judged {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        // The only valid reason to skip the check: a laptop without systemd's tools.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI has systemd-analyze: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// It is root, for two capabilities and one program. Systemd counts in tenths.
#[test]
fn the_reading_of_the_disks_has_two_capabilities_and_no_network() {
    let path = unit_path("holdfast-hardware.service");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(values(&text, "CapabilityBoundingSet"), ["CAP_SYS_ADMIN CAP_SYS_RAWIO"]);
    assert_eq!(values(&text, "RestrictAddressFamilies"), ["none"]);
    assert_eq!(values(&text, "ProtectSystem"), ["strict"]);
    assert!(values(&text, "ReadWritePaths").is_empty());
    // What the agent reads, and who may.
    assert_eq!(values(&text, "RuntimeDirectory"), ["holdfast-hardware"]);
    assert_eq!(values(&text, "RuntimeDirectoryMode"), ["0750"]);
    assert_eq!((values(&text, "Group"), values(&text, "UMask")), (vec!["holdfast"], vec!["0027"]));
    assert_eq!(
        values(&text, "ExecStart"),
        ["/usr/lib/holdfast/read-disks /usr/sbin/smartctl /run/holdfast-hardware"]
    );
    let timer = std::fs::read_to_string(unit_path("holdfast-hardware.timer")).unwrap();
    assert_eq!(values(&timer, "OnUnitActiveSec"), ["1h"]);
    judge("holdfast-hardware.service", 20);
}

/// It is root to read the agent's folder and to write to its own; what may come in is in the release keys.
#[test]
fn the_publisher_of_images_has_one_capability_and_no_network() {
    let text = std::fs::read_to_string(unit_path("holdfast-golden-publish@.service")).unwrap();
    assert_eq!(values(&text, "CapabilityBoundingSet"), ["CAP_DAC_READ_SEARCH"]);
    assert_eq!(values(&text, "PrivateNetwork"), ["yes"]);
    // No word of the caller's reaches it.
    assert_eq!(values(&text, "ExecStart"), ["/usr/lib/holdfast/holdfast-golden publish --output json"]);
    let socket = std::fs::read_to_string(unit_path("holdfast-golden-publish.socket")).unwrap();
    assert_eq!(values(&socket, "ListenStream"), ["/run/holdfast-golden-publish.sock"]);
    assert_eq!(
        (values(&socket, "SocketMode"), values(&socket, "SocketGroup")),
        (vec!["0660"], vec!["holdfast"])
    );
    judge("holdfast-golden-publish@.service", 15);
}

/// The build of the month has what a build by hand has, and no caller.
#[test]
fn the_build_by_timer_is_the_build_by_hand() {
    let read = |name: &str| std::fs::read_to_string(unit_path(name)).unwrap();
    let (timed, asked) = (read("holdfast-golden-build.service"), read("holdfast-golden@.service"));
    for key in
        ["CapabilityBoundingSet", "SystemCallFilter", "ProtectSystem", "DeviceAllow", "RestrictNamespaces"]
    {
        assert_eq!(values(&timed, key), values(&asked, key), "{key}");
    }
    assert_eq!(values(&timed, "ExecStart"), ["/usr/lib/holdfast/holdfast-golden build --as-of month"]);
    judge("holdfast-golden-build.service", 40);
}

/// They are root, for one capability each. Systemd counts in tenths.
#[test]
fn break_glass_has_one_capability_no_network_and_two_folders() {
    for (unit, task, capability) in [
        ("holdfast-break-glass.service", "order", "CAP_DAC_READ_SEARCH"),
        ("holdfast-break-glass-guard.service", "guard", "CAP_KILL"),
        ("holdfast-break-glass-boot.service", "tick", "CAP_KILL"),
    ] {
        let text = std::fs::read_to_string(unit_path(unit)).unwrap();
        assert_eq!(values(&text, "CapabilityBoundingSet"), [capability], "{unit}");
        assert_eq!(values(&text, "RestrictAddressFamilies"), ["none"], "{unit}");
        assert_eq!(values(&text, "ReadWritePaths"), ["/etc/ssh/holdfast-break-glass"], "{unit}");
        assert_eq!(values(&text, "StateDirectory"), ["holdfast-break-glass"], "{unit}");
        let command = format!("/usr/lib/holdfast/holdfast-break-glass {task}");
        assert_eq!(values(&text, "ExecStart"), [command.as_str()], "{unit}");
        judge(unit, 15);
    }
    let order = std::fs::read_to_string(unit_path("holdfast-break-glass.path")).unwrap();
    assert_eq!(values(&order, "PathChanged"), ["/var/lib/holdfast/break-glass/order.json"]);
    let guard = std::fs::read_to_string(unit_path("holdfast-break-glass-guard.path")).unwrap();
    assert_eq!(values(&guard, "PathExists"), ["/var/lib/holdfast-break-glass/open"]);
    let boot = std::fs::read_to_string(unit_path("holdfast-break-glass-boot.service")).unwrap();
    assert!(values(&boot, "Before").concat().contains("ssh.service"));
}

/// It is root without any right of root's but to read files that only root may.
#[test]
fn the_reading_of_the_packages_has_no_capability_and_no_network() {
    let path = unit_path("holdfast-updates.service");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(values(&text, "CapabilityBoundingSet"), [""]);
    assert_eq!(
        (values(&text, "RestrictAddressFamilies"), values(&text, "PrivateNetwork")),
        (vec!["none"], vec!["yes"])
    );
    assert_eq!(values(&text, "ProtectSystem"), ["strict"]);
    assert!(values(&text, "ReadWritePaths").is_empty());
    assert_eq!(values(&text, "RuntimeDirectory"), ["holdfast-updates"]);
    assert_eq!(values(&text, "RuntimeDirectoryMode"), ["0750"]);
    assert_eq!((values(&text, "Group"), values(&text, "UMask")), (vec!["holdfast"], vec!["0027"]));
    assert_eq!(
        values(&text, "ExecStart"),
        ["/usr/lib/holdfast/read-updates /usr/bin/apt-get /run/holdfast-updates"]
    );
    let timer = std::fs::read_to_string(unit_path("holdfast-updates.timer")).unwrap();
    assert_eq!(values(&timer, "OnUnitActiveSec"), ["1h"]);
    judge("holdfast-updates.service", 10);
}

/// It is root for Proxmox's own commands, and for files in the folder of the agent's user. Systemd counts in tenths.
#[test]
fn the_renewal_of_tokens_runs_one_command_and_no_agent_is_no_failure() {
    let unit = "holdfast-proxmox-tokens.service";
    let text = std::fs::read_to_string(unit_path(unit)).unwrap();
    assert_eq!(values(&text, "ExecStart"), ["/usr/bin/agentd renew-tokens"]);
    assert_eq!(values(&text, "SuccessExitStatus"), ["75"]);
    assert_eq!(values(&text, "CapabilityBoundingSet"), ["CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER"]);
    assert_eq!(
        (values(&text, "NoNewPrivileges"), values(&text, "ProtectSystem")),
        (vec!["yes"], vec!["strict"])
    );
    let timer = std::fs::read_to_string(unit_path("holdfast-proxmox-tokens.timer")).unwrap();
    assert_eq!(values(&timer, "OnUnitActiveSec"), ["6h"]);
    judge(unit, 25);
}

/// It is root without a capability, and hears nothing but that it was asked.
#[test]
fn restarts_of_tunnels_have_no_capability_and_no_network() {
    let unit = "holdfast-tunnel-restart@.service";
    let text = std::fs::read_to_string(unit_path(unit)).unwrap();
    assert_eq!(values(&text, "CapabilityBoundingSet"), [""]);
    assert_eq!(
        (values(&text, "RestrictAddressFamilies"), values(&text, "PrivateNetwork")),
        (vec!["AF_UNIX"], vec!["yes"])
    );
    assert_eq!(values(&text, "ReadWritePaths"), ["/var/lib/holdfast-tunnels/results"]);
    assert_eq!(
        values(&text, "ExecStart"),
        [
            "/usr/lib/holdfast/restart-tunnel %i /etc/holdfast/tunnels /usr/bin/systemctl /var/lib/holdfast-tunnels/results"
        ]
    );
    assert_eq!(
        (values(&text, "StartLimitIntervalSec"), values(&text, "StartLimitBurst")),
        (vec!["1h"], vec!["10"])
    );
    let path = std::fs::read_to_string(unit_path("holdfast-tunnel-restart@.path")).unwrap();
    assert_eq!(values(&path, "PathChanged"), ["/var/lib/holdfast-tunnels/requests/%i"]);
    assert_eq!(values(&path, "Unit"), ["holdfast-tunnel-restart@%i.service"]);
    judge(unit, 20);
}

/// Lines that are commented out have no space after the `#`; sentences do.
fn all_said(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn the_shipped_example_is_what_the_agent_reads() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/agent/agent.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let short = agentd::settings::Settings::parse(&text, &path).unwrap();
    let whole = agentd::settings::Settings::parse(&all_said(&text), &path).unwrap();
    assert_eq!((short.golden.len(), whole.golden.len()), (0, 1));
    assert_eq!((short.tunnel.len(), whole.tunnel.len()), (0, 1));
    assert_eq!((short.proxmox.bulk_storage, short.proxmox.backup_storage), (None, None));
    assert!(whole.proxmox.bulk_storage.is_some() && whole.proxmox.backup_storage.is_some());
    // The commented lines show the defaults, so both parse to the same value.
    assert_eq!(short.token_renewal.proxmox_days, whole.token_renewal.proxmox_days);
    assert_eq!(short.state.dir, whole.state.dir);
    assert_eq!(short.brake.rule(), whole.brake.rule());
    assert_eq!((short.trust.operators, short.trust.policy), (whole.trust.operators, whole.trust.policy));
}
