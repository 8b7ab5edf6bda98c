//! The container: the machine's root file system beneath, all changes in memory.

use std::fs;
use std::path::Path;

use crate::{Failure, IN_CONTAINER, command};

const BOX: &str = "/run/box/root";
const OUT: &str = "/run/box/check";

const POLICY: &str = "caller_uid = 990\ntransports = [\"usb\"]\n";

/// What sudo alone costs is measured by a program that does nothing.
const SUDO_TRUE: &str = "holdfast ALL=(root:root) NOPASSWD: /usr/bin/true\n";

const USER: &str = "echo 'holdfast:x:990:990::/:/bin/sh' >>$0/passwd; echo 'holdfast:x:990:' >>$0/group; \
                    echo 'holdfast:*:19000::::::' >>$0/shadow";

/// Boots it, and prints what the calls in it cost.
pub fn boot() -> Result<(), Failure> {
    lay_out()?;
    let bind = format!("--bind={OUT}:/check");
    let options = ["--quiet", "--register=no", "--keep-unit", "--private-network", "--directory", BOX, &bind];
    // A line on the console for each started unit would be measured too.
    let boot = ["--boot", "systemd.unit=check.service", "systemd.show_status=false"];
    let console = command("systemd-nspawn").args(options).args(boot).output()?;
    let of = |name: &str| fs::read_to_string(Path::new(OUT).join(name)).unwrap_or_default();
    let (figures, errors) = (of("figures"), of("errors"));
    if !figures.contains("BENCH ") {
        let console = String::from_utf8_lossy(&console.stdout);
        return Err(format!("the container printed no figure: {errors}{console}").into());
    }
    print!("{figures}");
    Ok(())
}

fn lay_out() -> Result<(), Failure> {
    run("mount", &["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])?;
    run("install", &["-d", "/run/box", "/run/box/upper", "/run/box/work", OUT, BOX])?;
    let layers = "lowerdir=/,upperdir=/run/box/upper,workdir=/run/box/work";
    run("mount", &["-t", "overlay", "-o", layers, "overlay", BOX])?;
    let inside = |path: &str| format!("{BOX}{path}");
    for folder in ["/usr/lib/holdfast", "/etc/holdfast", "/mnt/holdfast"] {
        run("install", &["-d", &inside(folder)])?;
    }
    run("chmod", &["755", &inside("/mnt")])?;
    let this = std::env::current_exe()?;
    let this = this.to_str().ok_or("the path of this program is no text")?;
    for (from, to, mode) in [
        (env!("CARGO_BIN_EXE_holdfast-helper"), "/usr/lib/holdfast/holdfast-helper", "755"),
        (this, "/usr/lib/holdfast/bench", "755"),
        (SHIPPED_SUDOERS, "/etc/sudoers.d/holdfast-helper", "440"),
    ] {
        run("install", &["-m", mode, from, &inside(to)])?;
    }
    let unit = |name: &str, text: &str| fs::write(inside(&format!("/etc/systemd/system/{name}")), text);
    unit("holdfast-helper.socket", SOCKET)?;
    unit("holdfast-helper@.service", SERVICE)?;
    // The same, for a program that does nothing.
    unit("same.socket", &SOCKET.replace("holdfast-helper.sock", "same.sock"))?;
    unit("same@.service", &SERVICE.replace("/usr/lib/holdfast/holdfast-helper", "/usr/bin/true"))?;
    unit("bare.socket", "[Socket]\nListenStream=/run/bare.sock\nAccept=yes\n")?;
    unit(
        "bare@.service",
        "[Service]\nExecStart=/usr/bin/true\nStandardInput=socket\nCollectMode=inactive-or-failed\n",
    )?;
    let sockets = "holdfast-helper.socket same.socket bare.socket";
    let check = format!(
        "[Unit]\nRequires={sockets}\nAfter={sockets}\n[Service]\nType=oneshot\nExecStart=/usr/lib/holdfast/bench \
         {IN_CONTAINER}\nStandardOutput=append:/check/figures\nStandardError=append:/check/errors\n\
         ExecStopPost=/bin/systemctl --no-block exit 0\n"
    );
    unit("check.service", &check)?;
    fs::write(inside("/etc/holdfast/helper.toml"), POLICY)?;
    fs::write(inside("/etc/sudoers.d/true"), SUDO_TRUE)?;
    run("chmod", &["440", &inside("/etc/sudoers.d/true")])?;
    run("sh", &["-ec", USER, &inside("/etc")])
}

const SHIPPED_SUDOERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sudoers/holdfast-helper");
const SOCKET: &str = include_str!("../../../systemd/holdfast-helper.socket");
const SERVICE: &str = include_str!("../../../systemd/holdfast-helper@.service");

fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let output = command(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
