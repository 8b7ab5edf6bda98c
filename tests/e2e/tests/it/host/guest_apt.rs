//! Tests of the apt hook with the real apt.

use super::machine::{Machine, command, run};
use super::stand::{Stand, write};
use super::story::SOON;

/// One service for a stack, and no snapshots.
const STACKS: &str = "[apt]\nafter = \"report\"\n[stack.shop]\ndriver = \"systemd\"\nunits = [\"shop.service\"]\nhealth_timeout_s = 1\n";
const SHOP: &str = "[Service]\nExecStart=/usr/bin/sleep infinity\n";

/// While its script runs, the judge runs already, and must wait: the shop is down then, and up before apt ends.
const MENDS: &str = "#!/bin/sh\nset -e\nsystemctl stop shop.service\n\
                     judges() { systemctl list-units --no-legend --state=running 'holdfast-apt-judge-*'; }\n\
                     while ! judges | grep . >/root/judges; do sleep 0.1; done\n\
                     systemctl start shop.service\n";
const BREAKS: &str = "#!/bin/sh\nsystemctl stop shop.service\nexit 1\n";

/// A package that leaves all well, one that breaks a stack and is left half done, and its removal by apt.
pub fn is_judged(stand: &Stand) {
    let machine = &stand.machine;
    stand.step("apt in a guest: how the stacks are is asked when it is done");
    write(machine, "/etc/holdfast/stacks.toml", STACKS);
    write(machine, "/etc/systemd/system/shop.service", SHOP);
    machine.does("systemctl daemon-reload; systemctl start shop.service");
    let install = "apt-get install --quiet --yes --no-install-recommends";

    machine.does(&format!("{install} {} 2>&1", package(stand, "mends", MENDS)));
    let reported = said(machine, "well before and after it: shop");
    stand.saw(&reported);
    stand.saw(&format!("it waited for apt: {}", machine.does("cat /root/judges")));

    machine.refuses(&format!("{install} {} 2>&1", package(stand, "breaks", BREAKS)));
    let reported = said(machine, "stack shop is not well");
    assert!(
        reported.contains("shop.service are not running") && reported.contains("breaks (half-configured)"),
        "{reported}"
    );
    stand.saw(&reported);
    let journal = machine.does("journalctl --no-pager --quiet --output=cat --unit='holdfast-apt-judge-*'");
    assert!(journal.contains("stack shop is not well"), "{journal}");

    // A person repairs it.
    machine.does("systemctl start shop.service; apt-get purge --quiet --yes breaks mends 2>&1");
    stand.saw(&said(machine, "well before and after it: shop"));
    machine.until(
        "no judge is left",
        SOON,
        "systemctl list-units --no-legend 'holdfast-apt-judge-*'",
        |said| said.is_empty(),
    );
    machine.does("systemctl stop shop.service; rm /etc/systemd/system/shop.service; rm -r /etc/holdfast");
    machine.does("rm /root/judges /srv/packages/breaks.deb /srv/packages/mends.deb; systemctl daemon-reload");
}

/// The `Packages` line of `guestd status`, once it contains this.
fn said(machine: &Machine, words: &str) -> String {
    let status = "guestd status | grep ^Packages || true";
    machine.until(words, SOON, status, |said| said.contains(words))
}

/// A package with nothing but this script.
fn package(stand: &Stand, name: &str, script: &str) -> String {
    let folder = stand.folder.join(name);
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: tests <tests@example>\nDescription: {name} it\n"
    );
    std::fs::create_dir_all(folder.join("DEBIAN")).unwrap();
    std::fs::write(folder.join("DEBIAN/control"), control).unwrap();
    std::fs::write(folder.join("DEBIAN/postinst"), script).unwrap();
    run(command("chmod").arg("755").arg(folder.join("DEBIAN/postinst")));
    let inside = format!("/srv/packages/{name}.deb");
    run(command("dpkg-deb")
        .args(["--root-owner-group", "-Zgzip", "-z1", "--build"])
        .arg(&folder)
        .arg(stand.machine.path(&inside)));
    inside
}
