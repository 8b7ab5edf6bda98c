//! Tests of the verb `golden-build` with a fake builder.
//!
//! The real builder is tested by `cargo xtask golden prove`.

use crate::callers::through;
use crate::test_host::{CALLER_UID, Host, POLICY, on_a_host, run};

const BUILD: &str = r#"{"verb":"golden-build"}"#;
const BUILDER: &str = "/usr/lib/holdfast/holdfast-golden";
/// Prints its arguments, environment and capabilities, as the real builder prints its stages.
pub const SAYS: &str = r#"#!/bin/sh
echo "{\"words\":\"$*\",\"environment\":\"$(tr '\0' ' ' </proc/$PPID/environ)\",\"capabilities\":\"$(sed -n 's/^CapEff:\t//p' /proc/self/status)\"}"
[ ! -e /run/builder-fails ]
"#;
/// chown, dac_override, fowner, fsetid, kill, setgid, setuid, sys_chroot, sys_admin, mknod, setfcap.
pub const CAPABILITIES: &str = "00000000882400fb";

/// A machine with the builder and a dump folder.
fn lay_out(host: &Host) {
    run("install", &["-d", "/run/lib", "/run/lib/upper", "/run/lib/work"]);
    run(
        "mount",
        &[
            "-t",
            "overlay",
            "-o",
            "lowerdir=/usr/lib,upperdir=/run/lib/upper,workdir=/run/lib/work",
            "o",
            "/usr/lib",
        ],
    );
    run("install", &["-d", "/usr/lib/holdfast", "/mnt/dump"]);
    std::fs::write("/run/builder", SAYS).unwrap();
    run("install", &["-m", "755", "/run/builder", BUILDER]);
    dump(host, "/mnt/dump");
}

fn dump(host: &Host, folder: &str) {
    host.whole_policy(&format!("caller_uid = {CALLER_UID}\ntransports = []\ngolden_dump = \"{folder}\"\n"));
}

#[test]
fn the_builder_gets_fixed_arguments_no_environment_and_eleven_capabilities() {
    on_a_host("golden::the_builder_gets_fixed_arguments_no_environment_and_eleven_capabilities", |host| {
        lay_out(host);
        let output = through(&["env", "SECRET=x"]).arg("golden-build").said(BUILD);
        let lines: Vec<serde_json::Value> =
            output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [builder, reply] = lines.as_slice() else { panic!("{output}") };
        assert_eq!(builder["words"], "build --output json --out /mnt/dump");
        assert_eq!(
            (builder["environment"].as_str(), builder["capabilities"].as_str()),
            (Some(""), Some(CAPABILITIES))
        );
        assert_eq!((&reply["ok"], &reply["verb"]), (&true.into(), &"golden-build".into()));
        let journal = host.lines();
        assert!(journal.len() == 1 && journal[0].contains("HOLDFAST_VERB=golden-build\n"), "{journal:?}");
        std::fs::write("/run/builder-fails", "").unwrap();
        let output = through(&["env"]).arg("golden-build").said(BUILD);
        assert!(output.contains(r#""ok":false,"code":"E_FAILED""#), "{output}");
        assert!(host.lines()[0].contains("HOLDFAST_CODE=E_FAILED\n"));
    });
}

#[test]
fn a_build_without_root_setup_is_refused() {
    on_a_host("golden::a_build_without_root_setup_is_refused", |host| {
        lay_out(host);
        let by_its_socket =
            |host: &Host| host.answer(through(&["env"]).arg("golden-build"), BUILD.as_bytes());
        // The mounting socket has too few capabilities, whatever is requested.
        host.refused("E_CAPS", "by the mounting socket", || host.ask(BUILD));
        let status = br#"{"verb":"status"}"#;
        host.refused("E_ARGV", "another verb", || host.answer(through(&["env"]).arg("golden-build"), status));
        let mut weak = through(&["setpriv", "--bounding-set=-all,+sys_admin"]);
        host.refused("E_CAPS", "too few capabilities", || {
            host.answer(weak.arg("golden-build"), BUILD.as_bytes())
        });
        run("install", &["-d", "-m", "777", "/mnt/open"]);
        run("ln", &["-s", "/mnt/dump", "/mnt/link"]);
        run("install", &["-d", "-o", "990", "/mnt/others"]);
        for folder in
            ["", "mnt/dump", "/", "/mnt/none", "/mnt/open", "/mnt/link", "/mnt/others", "/mnt/../mnt/dump"]
        {
            dump(host, folder);
            host.refused("E_PATH", folder, || by_its_socket(host));
        }
        host.policy("");
        host.refused("E_AUTHZ", "no folder", || by_its_socket(host));
        dump(host, "/mnt/dump");
        run("chmod", &["777", BUILDER]);
        host.refused("E_ENV", "a builder writable by others", || by_its_socket(host));
        run("rm", &[BUILDER]);
        host.refused("E_ENV", "no builder", || by_its_socket(host));
        run("chmod", &["666", POLICY]);
        host.refused("E_ENV", "a policy writable by others", || by_its_socket(host));
    });
}

#[test]
fn a_build_does_not_block_mounts() {
    on_a_host("golden::a_build_does_not_block_mounts", |host| {
        lay_out(host);
        run("mkfifo", &["/run/go-on"]);
        std::fs::write("/run/builder", "#!/bin/sh\necho '{\"stage\":\"debian\"}'\nread line </run/go-on\n")
            .unwrap();
        run("install", &["-m", "755", "/run/builder", BUILDER]);
        std::thread::scope(|scope| {
            let building = scope.spawn(|| through(&["env"]).arg("golden-build").said(BUILD));
            // Opening the pipe for writing waits until the builder reads it: it is at work then.
            let mut pipe = std::fs::File::options().write(true).open("/run/go-on").unwrap();
            host.status();
            std::io::Write::write_all(&mut pipe, b"go\n").unwrap();
            assert!(building.join().unwrap().contains(r#""ok":true"#));
        });
    });
}

/// A call whose every line counts.
trait BuilderOutput {
    fn said(&mut self, request: &str) -> String;
}

impl BuilderOutput for std::process::Command {
    fn said(&mut self, request: &str) -> String {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, request.as_bytes()).unwrap();
        drop(writer);
        String::from_utf8(self.stdin(reader).output().unwrap().stdout).unwrap()
    }
}
