//! The build as a box does it: the machine's own Debian booted once more with its real systemd, the shipped socket and
//! unit, the helper, the builder and root's policy where a package lays them; asked as the agent's user.

use std::path::Path;
use std::time::Instant;

use crate::Golden;
use crate::tools::{contained, run};

/// Asks through the socket as uid 990, and keeps every line of the answer.
const CHECK: &str = r#"exec 2>/check/errors
setpriv --reuid=990 --regid=990 --clear-groups perl -MIO::Socket::UNIX -e '
  my $s = IO::Socket::UNIX->new(Peer => "/run/holdfast-golden.sock") or die "no door: $!";
  print $s q({"verb":"golden-build"}); shutdown($s, 1); print while <$s>;' >/check/said
journalctl -b --no-pager -u 'holdfast-golden@*' >/check/journal
"#;
const UNIT: &str = "[Unit]\nRequires=holdfast-golden.socket\nAfter=holdfast-golden.socket systemd-journald.service\n\
    [Service]\nType=oneshot\nExecStart=/bin/bash /check/check.sh\nExecStopPost=/bin/systemctl --no-block exit 0\n";

/// Builds one through the door.
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
            // Debian is unpacked on the disk and not in the layer above it.
            &format!("--bind={}:/var/cache/holdfast-golden", home.join("cache").display()),
            "systemd.unit=check.service",
        ],
    );
    drop(mounted);
    let read = |name: &str| std::fs::read_to_string(home.join("check").join(name)).unwrap_or_default();
    let (answer, why) = (read("said"), format!("{}{}{said}", read("errors"), read("journal")));
    let lines: Vec<serde_json::Value> = answer
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{answer}{why}")))
        .collect();
    let stages: Vec<&str> = lines.iter().filter_map(|line| line["stage"].as_str()).collect();
    assert_eq!(stages, ["debian", "image", "pack", "scan"], "{answer}{why}");
    let reply = lines.last().unwrap();
    assert_eq!((&reply["ok"], &reply["verb"]), (&true.into(), &"golden-build".into()), "{answer}{why}");
    let golden = Golden::read(&home.join("dump"));
    let built = lines.iter().find_map(|line| line.get("built")).unwrap_or_else(|| panic!("{answer}{why}"));
    assert_eq!(built["sha256"], golden.manifest.sha256);
    println!("built through the helper's door in {:.0} s", begun.elapsed().as_secs_f32());
    golden
}

fn lay_out(programs: &Path, home: &Path, inside: &impl Fn(&str) -> String) {
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let shipped = |name: &str| format!("{workspace}/{name}");
    let program = |name: &str| programs.join(name).to_str().unwrap().to_owned();
    for folder in
        ["/usr/lib/holdfast/golden", "/usr/share/holdfast/golden/units", "/etc/holdfast", "/var/lib/vz/dump"]
    {
        run("install", &["-d", &inside(folder)]);
    }
    let mut files = vec![
        (program("holdfast-helper"), "/usr/lib/holdfast/holdfast-helper".to_owned(), "755"),
        (program("holdfast-golden"), "/usr/lib/holdfast/holdfast-golden".to_owned(), "755"),
        (program("guestd"), "/usr/lib/holdfast/golden/guestd".to_owned(), "755"),
        (shipped("golden/recipe.toml"), "/usr/share/holdfast/golden/recipe.toml".to_owned(), "644"),
    ];
    for unit in ["holdfast-golden.socket", "holdfast-golden@.service"] {
        files.push((shipped(&format!("systemd/{unit}")), format!("/etc/systemd/system/{unit}"), "644"));
    }
    for unit in std::fs::read_dir(shipped("golden/units")).unwrap() {
        let path = unit.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.push((
            path.to_str().unwrap().to_owned(),
            format!("/usr/share/holdfast/golden/units/{name}"),
            "644",
        ));
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
