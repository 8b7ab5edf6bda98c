//! Tests of restarts, upgrades and a hanging daemon.

use std::time::Duration;

use super::machine::{command, run};
use super::stand::{Stand, write};
use super::story::{SOON, guest_is_well};

/// Everything returns by itself.
pub fn reboot(stand: &mut Stand) {
    stand.step("systemctl reboot");
    stand.machine.does("sync");
    stand.machine.reboot();
    let machine = &stand.machine;
    for unit in ["hubd.service", "agentd.service", "holdfast-helper.socket"] {
        machine.until(unit, SOON, &format!("systemctl is-active {unit}"), |said| said == "active");
    }
    stand.saw(&format!("the guest: {}", guest_is_well(stand)));
    let line = machine.until(
        "the status line",
        SOON,
        "systemctl show --property=StatusText --value agentd",
        |said| said.contains("generation 2; 1 of 1 guests run") && said.contains("hub reached"),
    );
    stand.saw(&format!("Status: {line}"));
    super::attached::is_back(stand);
}

/// A second package, made of the first one with a higher number: the known state stays, the service runs the new
/// version.
pub fn upgrade(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("apt install of a newer package");
    let before = machine.does("systemctl show --property=MainPID --value agentd hubd");
    let identity = machine.does("sha256sum /var/lib/holdfast/secrets/* /etc/holdfast/*");
    let packages =
        ["holdfast-agent", "holdfast-hub", "holdfast-cli"].map(|name| newer(stand, name)).join(" ");
    let said = machine.does(&format!("apt-get install --quiet --yes {packages} 2>&1"));
    assert!(!said.contains("dpkg: error") && !said.contains("warning"), "{said}");
    stand.saw(&machine.does("dpkg-query -W 'holdfast-*' | tr '\\n\\t' ', '"));
    let after = machine.until(
        "the services",
        SOON,
        "systemctl show --property=MainPID --value agentd hubd",
        |said| said.split_whitespace().zip(before.split_whitespace()).all(|(is, was)| is != "0" && is != was),
    );
    stand.saw(&format!(
        "agentd and hubd were started anew: {} → {}",
        before.replace("\n\n", ", "),
        after.replace("\n\n", ", ")
    ));
    assert_eq!(machine.does("sha256sum /var/lib/holdfast/secrets/* /etc/holdfast/*"), identity);
    assert_eq!(machine.does("systemctl is-active holdfast-helper.socket"), "active");
    let sudo = "runuser -u holdfast -- sudo -n /usr/lib/holdfast/holdfast-helper status";
    assert_eq!(machine.reports(&format!("echo '{{\"verb\":\"status\"}}' | {sudo}"))["ok"], true);
    stand.saw(&format!("the guest: {}", guest_is_well(stand)));
}

/// The package's file with another number; gives its path in there.
fn newer(stand: &Stand, name: &str) -> String {
    let (machine, folder) = (&stand.machine, stand.folder.join(format!("{name}.newer")));
    let old = machine.path(&stand.package(name));
    run(command("dpkg-deb").arg("--raw-extract").arg(&old).arg(&folder));
    run(command("sed").arg("-i").arg("s/^Version: .*/&+newer/").arg(folder.join("DEBIAN/control")));
    let inside = format!("/srv/packages/newer-{name}.deb");
    run(command("dpkg-deb")
        .args(["--root-owner-group", "-Zgzip", "-z1", "--build"])
        .arg(&folder)
        .arg(machine.path(&inside)));
    inside
}

/// A daemon that hangs is ended and started again by systemd's watchdog, within its bound.
pub fn hang(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("kill -STOP agentd: the watchdog");
    assert_eq!(machine.does("systemctl show --property=WatchdogUSec --value agentd"), "5min", "as shipped");
    // As shipped, only sooner.
    let bound = Duration::from_secs(30);
    let drop_in = format!("[Service]\nWatchdogSec={}\nTimeoutAbortSec=5\n", bound.as_secs());
    write(machine, "/etc/systemd/system/agentd.service.d/soon.conf", &drop_in);
    machine.does("systemctl daemon-reload; systemctl restart agentd");
    let alive = "systemctl show --property=MainPID,NRestarts,ActiveState --value agentd | tr '\\n' ' '";
    let before = machine.until("agentd", SOON, alive, |said| said.contains("active"));
    // It notifies the watchdog while it is well: it runs on for longer than the bound.
    let fed = "systemctl show --property=WatchdogTimestampMonotonic --value agentd";
    let first = machine.does(fed);
    machine.until("the dog to be fed", bound, fed, |said| said != first && said != "0");
    machine.does("kill -STOP $(systemctl show --property=MainPID --value agentd)");
    let hung = std::time::Instant::now();
    let after = machine.until("a new agentd", bound * 2, alive, |said| {
        let mut words = said.split_whitespace();
        let (pid, restarts, state) = (words.next(), words.next(), words.next());
        !before.starts_with(&format!("{} ", pid.unwrap_or_default()))
            && restarts == Some("1")
            && state == Some("active")
    });
    stand
        .saw(&format!("hung for {:.0} s, then another one: {before}→ {after}", hung.elapsed().as_secs_f32()));
    let journal = machine.does(
        "journalctl --no-pager --quiet --output=cat _PID=1 UNIT=agentd.service | grep -i watchdog | tail -1",
    );
    stand.saw(&journal);
    machine.does(
        "rm -r /etc/systemd/system/agentd.service.d; systemctl daemon-reload; systemctl restart agentd",
    );
    stand.saw(&format!("the guest: {}", guest_is_well(stand)));
}
