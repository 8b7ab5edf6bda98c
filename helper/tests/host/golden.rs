//! The verb `golden-build` with a builder that only says what it was given: who may have it started, in which folder, and
//! what it may do then. The real builder is shown by `cargo xtask golden prove`.

use crate::callers::through;
use crate::stage::{CALLER_UID, Host, POLICY, on_a_host, run};

const BUILD: &str = r#"{"verb":"golden-build"}"#;
const BUILDER: &str = "/usr/lib/holdfast/holdfast-golden";
/// Tells its words, its environment and its powers, as the real one tells its stages.
pub const SAYS: &str = r#"#!/bin/sh
echo "{\"words\":\"$*\",\"environment\":\"$(tr '\0' ' ' </proc/$PPID/environ)\",\"powers\":\"$(sed -n 's/^CapEff:\t//p' /proc/self/status)\"}"
[ ! -e /run/builder-fails ]
"#;
/// chown, dac_override, fowner, fsetid, kill, setgid, setuid, sys_chroot, sys_admin, mknod, setfcap.
pub const POWERS: &str = "00000000882400fb";

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
fn the_builder_gets_fixed_words_no_environment_and_eleven_powers() {
    on_a_host("golden::the_builder_gets_fixed_words_no_environment_and_eleven_powers", |host| {
        lay_out(host);
        let output = through(&["env", "SECRET=x"]).arg("golden-build").said(BUILD);
        let lines: Vec<serde_json::Value> =
            output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [builder, reply] = lines.as_slice() else { panic!("{output}") };
        assert_eq!(builder["words"], "build --output json --out /mnt/dump");
        assert_eq!((builder["environment"].as_str(), builder["powers"].as_str()), (Some(""), Some(POWERS)));
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
fn a_build_that_root_did_not_prepare_is_refused() {
    on_a_host("golden::a_build_that_root_did_not_prepare_is_refused", |host| {
        lay_out(host);
        let by_its_door = |host: &Host| host.answer(through(&["env"]).arg("golden-build"), BUILD.as_bytes());
        // The mounting door has not the powers, whatever it is asked.
        host.refused("E_CAPS", "by the mounting door", || host.ask(BUILD));
        let status = br#"{"verb":"status"}"#;
        host.refused("E_ARGV", "another verb", || host.answer(through(&["env"]).arg("golden-build"), status));
        let mut weak = through(&["setpriv", "--bounding-set=-all,+sys_admin"]);
        host.refused("E_CAPS", "too few powers", || host.answer(weak.arg("golden-build"), BUILD.as_bytes()));
        run("install", &["-d", "-m", "777", "/mnt/open"]);
        run("ln", &["-s", "/mnt/dump", "/mnt/link"]);
        run("install", &["-d", "-o", "990", "/mnt/others"]);
        for folder in
            ["", "mnt/dump", "/", "/mnt/none", "/mnt/open", "/mnt/link", "/mnt/others", "/mnt/../mnt/dump"]
        {
            dump(host, folder);
            host.refused("E_PATH", folder, || by_its_door(host));
        }
        host.policy("");
        host.refused("E_AUTHZ", "no folder", || by_its_door(host));
        dump(host, "/mnt/dump");
        run("chmod", &["777", BUILDER]);
        host.refused("E_ENV", "a builder that others may write", || by_its_door(host));
        run("rm", &[BUILDER]);
        host.refused("E_ENV", "no builder", || by_its_door(host));
        run("chmod", &["666", POLICY]);
        host.refused("E_ENV", "a policy that others may write", || by_its_door(host));
    });
}

#[test]
fn a_build_holds_up_no_mount() {
    on_a_host("golden::a_build_holds_up_no_mount", |host| {
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
trait Said {
    fn said(&mut self, request: &str) -> String;
}

impl Said for std::process::Command {
    fn said(&mut self, request: &str) -> String {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, request.as_bytes()).unwrap();
        drop(writer);
        String::from_utf8(self.stdin(reader).output().unwrap().stdout).unwrap()
    }
}
