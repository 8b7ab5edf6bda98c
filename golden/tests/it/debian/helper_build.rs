//! Build through the helper, as on a host.
//!
//! A booted Debian with its real systemd, the shipped socket and unit, the helper, the builder and the policy of root.

use std::path::Path;
use std::time::Instant;

use super::Golden;
use super::devices::Devices;
use super::tools::{contained, run};

/// Requests the build as uid 990, and keeps the output.
const CHECK: &str = r#"setpriv --reuid=990 --regid=990 --clear-groups /usr/bin/agentd golden build >/check/said 2>/check/told
echo "exit $?" >>/check/told
journalctl -b --no-pager -u 'holdfast-golden@*' >/check/journal
"#;
/// The stages that are shown to a person while the build runs.
const STAGES: [&str; 4] = [
    "fetching and unpacking Debian",
    "putting the image together",
    "packing it",
    "looking for secrets in it",
];
const UNIT: &str = "[Unit]\nRequires=holdfast-golden.socket\nAfter=holdfast-golden.socket systemd-journald.service\n\
    [Service]\nType=oneshot\nExecStart=/bin/bash /check/check.sh\nExecStopPost=/bin/systemctl --no-block exit 0\n";

/// Builds one through the helper's socket.
pub fn build(programs: &Path, place: &Path) -> Golden {
    let begun = Instant::now();
    let home = place.join("door");
    let inside = |path: &str| format!("{}/box{path}", home.display());
    for folder in ["upper", "work", "check", "box", "dump", "cache"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    let layers = format!("lowerdir=/,upperdir={0}/upper,workdir={0}/work", home.display());
    run("mount", &["-t", "overlay", "-o", &layers, "overlay", &inside("")]);
    let mounted = Mounted(inside(""));
    lay_out(programs, &home, &inside);
    let unit =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../systemd/holdfast-golden@.service"));
    let devices = Devices::of(&unit.unwrap(), &home);
    Devices::lay_out(&inside("/usr/lib/holdfast/holdfast-helper"));
    std::fs::create_dir_all(home.join("check/devices")).unwrap();
    let said = contained(
        "3000",
        &[
            "--quiet",
            "--boot",
            "--settings=no",
            "--register=no",
            "--keep-unit",
            "--console=pipe",
            "--resolv-conf=off",
            "--link-journal=no",
            &format!("--directory={}", mounted.0),
            &format!("--bind={}:/check", home.join("check").display()),
            &format!("--bind={}:/var/lib/vz/dump", home.join("dump").display()),
            &devices.bind(),
            // Debian is unpacked on the disk and not in the layer above it.
            &format!("--bind={}:/var/cache/holdfast-golden", home.join("cache").display()),
            "systemd.unit=check.service",
        ],
    );
    drop((mounted, devices));
    let read = |name: &str| std::fs::read_to_string(home.join("check").join(name)).unwrap_or_default();
    let (answer, output) = (read("said"), read("told"));
    let why = format!("{output}{}{said}", read("journal"));
    let mut lines = output.lines();
    for stage in STAGES {
        assert!(lines.any(|line| line.ends_with(stage)), "{stage}: {answer}{why}");
    }
    assert_eq!(lines.next(), Some("exit 0"), "{answer}{why}");
    let golden = Golden::read(&home.join("dump"));
    let words = answer.lines().find_map(|line| line.strip_prefix("sha256")).map(str::trim);
    assert_eq!(words, Some(golden.manifest.sha256.as_str()), "{answer}{why}");
    println!("built through the helper's door in {:.0} s", begun.elapsed().as_secs_f32());
    golden
}

fn lay_out(programs: &Path, home: &Path, inside: &impl Fn(&str) -> String) {
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let shipped = |name: &str| format!("{workspace}/{name}");
    let program = |name: &str| programs.join(name).to_str().unwrap().to_owned();
    for folder in [
        "/usr/lib/holdfast/golden",
        "/usr/share/holdfast/golden/units",
        "/usr/share/holdfast/golden/files",
        "/etc/holdfast",
        "/var/lib/vz/dump",
    ] {
        run("install", &["-d", &inside(folder)]);
    }
    let packed = home.join("guestd.zst");
    let bytes = std::fs::read(programs.join("guestd")).unwrap();
    std::fs::write(&packed, zstd::encode_all(bytes.as_slice(), 1).unwrap()).unwrap();
    let mut files = vec![
        (program("agentd"), "/usr/bin/agentd".to_owned(), "755"),
        (program("holdfast-helper"), "/usr/lib/holdfast/holdfast-helper".to_owned(), "755"),
        (program("holdfast-golden"), "/usr/lib/holdfast/holdfast-golden".to_owned(), "755"),
        (packed.to_str().unwrap().to_owned(), "/usr/lib/holdfast/golden/guestd.zst".to_owned(), "644"),
        (shipped("golden/recipe.toml"), "/usr/share/holdfast/golden/recipe.toml".to_owned(), "644"),
    ];
    for unit in ["holdfast-golden.socket", "holdfast-golden@.service"] {
        files.push((shipped(&format!("systemd/{unit}")), format!("/etc/systemd/system/{unit}"), "644"));
    }
    for folder in ["units", "files"] {
        for file in std::fs::read_dir(shipped(&format!("golden/{folder}"))).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let to = format!("/usr/share/holdfast/golden/{folder}/{name}");
            files.push((path.to_str().unwrap().to_owned(), to, "644"));
        }
    }
    for (from, to, mode) in files {
        run("install", &["-m", mode, &from, &inside(&to)]);
    }
    std::fs::write(
        inside("/etc/holdfast/helper.toml"),
        "caller_uid = 990\ntransports = []\ngolden_dump = \"/var/lib/vz/dump\"\n",
    )
    .unwrap();
    let user = "echo 'holdfast:x:990:990::/:/bin/sh' >>$0/passwd; echo 'holdfast:x:990:' >>$0/group; \
                echo 'holdfast:*:19000::::::' >>$0/shadow";
    run("sh", &["-ec", user, &inside("/etc")]);
    std::fs::write(inside("/etc/systemd/system/check.service"), UNIT).unwrap();
    std::fs::write(home.join("check/check.sh"), CHECK).unwrap();
}

/// Taken away again however the test ends.
struct Mounted(String);

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &["-l", &self.0]);
    }
}
