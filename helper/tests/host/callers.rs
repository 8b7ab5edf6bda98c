//! Tests of hostile callers: any process state, user or connection.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::disks::LoopDisk;
use crate::test_host::{Host, PROGRAM, command, mount_request, on_a_host, run, wait_until};

const STATUS: &str = r#"{"verb":"status"}"#;
const TOOLS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The helper started by another program that prepares its state.
pub fn through(words: &[&str]) -> Command {
    let mut command = command(words[0]);
    command.args(&words[1..]).arg(PROGRAM).env_clear().env("PATH", TOOLS);
    command
}

/// The helper started by a shell that does something first.
fn after(script: &str) -> Command {
    let mut command = command("bash");
    command.args(["-c", &format!("{script}; exec {PROGRAM}")]).env_clear().env("PATH", TOOLS);
    command
}

fn helper() -> Command {
    let mut command = command(PROGRAM);
    command.env_clear();
    command
}

#[test]
fn at_most_one_known_verb_is_accepted() {
    use std::os::unix::process::CommandExt;
    on_a_host("callers::at_most_one_known_verb_is_accepted", |host| {
        let refused = |what: &str, prepare: &dyn Fn(&mut Command)| {
            let mut command = helper();
            prepare(&mut command);
            host.refused("E_ARGV", what, || host.answer(&mut command, STATUS.as_bytes()));
        };
        // Since Linux 5.18 a program that is started with no argument at all gets this one instead.
        refused("argc 0", &|command| {
            command.arg0("");
        });
        for words in [
            &["--help"][..],
            &["status", "status"],
            &["STATUS"],
            &[""],
            &["status\n"],
            &["\\"],
            &["golden-build"],
            &["-s", "\\", "x"],
        ] {
            refused(&format!("{words:?}"), &|command| {
                command.args(words);
            });
        }
        refused("the argument names another verb than the request", &|command| {
            command.arg("mount");
        });
        for name in ["sudoedit", "-", "\\", "/proc/self/exe", "a\nb"] {
            let mut command = helper();
            command.arg0(name).arg("status");
            host.done(name, host.answer(&mut command, STATUS.as_bytes()));
        }
    });
}

#[test]
fn standard_input_is_one_bounded_request() {
    on_a_host("callers::standard_input_is_one_bounded_request", |host| {
        let refused = |code: &str, what: &str, input: Stdio| {
            host.refused(code, what, || host.answer_from(&mut helper(), input));
        };
        refused("E_SYNTAX", "/dev/null", Stdio::null());
        refused("E_SIZE", "/dev/zero", File::open("/dev/zero").unwrap().into());
        refused("E_ENV", "a folder", File::open("/run").unwrap().into());
        host.refused("E_SYNTAX", "closed", || host.answer(&mut after("exec 0<&-"), b""));
        host.refused("E_SIZE", "4 KiB and one", || host.answer(&mut helper(), &[b' '; 4097]));
        host.refused("E_SYNTAX", "two requests", || {
            host.answer(&mut helper(), [STATUS, STATUS].concat().as_bytes())
        });
        host.refused("E_SYNTAX", "a NUL", || host.answer(&mut helper(), b"{\"verb\":\"status\"}\0"));
        host.refused("E_ENCODING", "no UTF-8", || host.answer(&mut helper(), b"{\"verb\":\"\xff\"}"));
        host.refused("E_DUP_KEY", "twice", || host.ask(r#"{"verb":"status","verb":"status"}"#));
        host.refused("E_UNKNOWN_FIELD", "more", || host.ask(r#"{"verb":"status","path":"/etc"}"#));
        host.refused("E_MOUNT_OPT", "an option", || {
            host.ask(r#"{"verb":"mount","target":"a","uuid":"0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b","options":["suid"]}"#)
        });
        let mut padded = STATUS.as_bytes().to_vec();
        padded.resize(4096, b' ');
        host.done("4 KiB", host.answer(&mut helper(), &padded));
        let started = Instant::now();
        // One byte a second, and a pipe that is never closed.
        host.refused("E_TIMEOUT", "slow", || {
            host.answer(&mut after("exec 0< <(while sleep 1; do printf ' '; done)"), b"")
        });
        assert!((5..15).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    });
}

#[test]
fn the_environment_is_ignored() {
    on_a_host("callers::the_environment_is_ignored", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let plain = host.ask(STATUS);
        let mut hostile = helper();
        for name in [
            "GCONV_PATH",
            "TMPDIR",
            "PATH",
            "IFS",
            "LIBMOUNT_FSTAB",
            "BLKID_FILE",
            "SUDO_UID",
            "HOME",
            "RUST_BACKTRACE",
            "RUST_LOG",
        ] {
            hostile.env(name, "/run/x");
        }
        hostile.env("LANG", "../../x").env("LC_ALL", "\u{1b}").env("SUDO_COMMAND", "a\nMESSAGE=b");
        // The loader prints its own messages before the program starts: they must at least not change what it does.
        hostile
            .env("LD_PRELOAD", "/run/none.so")
            .env("LD_BIND_NOW", "1")
            .env("GLIBC_TUNABLES", "glibc.malloc.check=3");
        for number in 0..15 {
            hostile.env(format!("FILLER{number}"), "x".repeat(128 * 1024 - 64));
        }
        let filled = host.answer(&mut hostile, STATUS.as_bytes());
        assert_eq!((filled.exit, &filled.reply, &filled.journal), (plain.exit, &plain.reply, &plain.journal));
        host.done(
            "and it still mounts",
            host.answer(&mut hostile, mount_request("usb1", &disk.uuid).as_bytes()),
        );
    });
}

#[test]
fn unusual_process_state_changes_nothing() {
    on_a_host("callers::unusual_process_state_changes_nothing", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let request = mount_request("usb1", &disk.uuid);
        let mut odd = vec![
            ("a deleted folder to stand in", after("mkdir /run/gone; cd /run/gone; rmdir /run/gone")),
            ("no mask", after("umask 0")),
            ("every mask", after("umask 777")),
            (
                "no file may grow, no process be made",
                through(&["prlimit", "--fsize=0", "--nproc=0", "--core=unlimited"]),
            ),
            (
                "low limits that may be lifted",
                through(&["prlimit", "--nofile=16:1024", "--fsize=0:unlimited"]),
            ),
            ("ignored signals", through(&["env", "--ignore-signal=CHLD,PIPE,TERM,ALRM"])),
            ("blocked signals", through(&["env", "--block-signal"])),
            ("no new privileges", through(&["setpriv", "--no-new-privs"])),
            ("a nice one", through(&["nice", "-n", "19"])),
            ("a session of its own", through(&["setsid", "--wait"])),
            (
                "only the one power",
                through(&["setpriv", "--bounding-set=-all,+sys_admin", "--inh-caps=-all"]),
            ),
        ];
        for (what, command) in &mut odd {
            host.done(what, host.answer(command, request.as_bytes()));
            let modes = run("stat", &["-c", "%a %u", "/run/holdfast-helper", "/run/holdfast-helper/lock"]);
            assert_eq!(modes, "700 0\n600 0", "{what}");
            host.done(what, host.unmount("usb1"));
            assert_eq!(run("stat", &["-c", "%a %u", "/mnt/holdfast/usb1"]), "700 0", "{what}");
        }
    });
}

#[test]
fn uncorrectable_process_state_is_refused() {
    on_a_host("callers::uncorrectable_process_state_is_refused", |host| {
        let disk = LoopDisk::new("disk", "ext4");
        host.policy(&disk.target("usb1", "ext4"));
        let request = mount_request("usb1", &disk.uuid);
        run("install", &["-m", "600", "/dev/null", "/etc/secret"]);
        // A user of the machine may start the program, but reach nothing with it.
        run("chmod", &["755", "/run", "/run/program"]);
        for (code, what, mut command) in [
            ("E_ENV", "open to a secret", after("exec 3</etc/secret")),
            (
                "E_ENV",
                "open to many",
                after("for fd in 3 9 77 500 1023; do eval \"exec $fd</etc/secret\"; done"),
            ),
            ("E_ENV", "open to the machine's root", after("exec 7</")),
            ("E_ENV", "few files for good", through(&["prlimit", "--nofile=16"])),
            (
                "E_CAPS",
                "another user",
                through(&["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]),
            ),
            (
                "E_CAPS",
                "another user with root's capabilities",
                through(&[
                    "setpriv",
                    "--reuid=1000",
                    "--clear-groups",
                    "--inh-caps=+sys_admin",
                    "--ambient-caps=+sys_admin",
                ]),
            ),
            ("E_CAPS", "half of root", through(&["setpriv", "--ruid=1000", "--clear-groups"])),
            ("E_CAPS", "root of a user namespace", through(&["unshare", "--user", "--map-root-user"])),
            ("E_CAPS", "root without the one power", through(&["setpriv", "--bounding-set=-sys_admin"])),
        ] {
            host.refused(code, what, || host.answer(&mut command, request.as_bytes()));
        }
        let mut powerless = through(&["setpriv", "--bounding-set=-all"]);
        host.done("looking needs no power", host.answer(&mut powerless, STATUS.as_bytes()));
    });
}

#[test]
fn calls_are_exclusive() {
    on_a_host("callers::calls_are_exclusive", |host: &Host| {
        host.status();
        let lock = File::open("/run/holdfast-helper/lock").unwrap();
        lock.lock().unwrap();
        host.refused("E_BUSY", "a second instance", || host.ask(STATUS));
        host.refused("E_BUSY", "a second instance", || host.unmount("usb1"));
        lock.unlock().unwrap();
        assert_eq!(host.status()["ok"], true);
    });
}

/// While it reads, no capability is effective, one is permitted, and nothing of the caller is left.
#[test]
fn no_capability_is_effective_while_reading() {
    on_a_host("callers::no_capability_is_effective_while_reading", |host| {
        let mut child = helper()
            .env("SECRET", "x")
            .current_dir("/run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let of = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
        let has = |line: &str| of("status").lines().any(|own| own == line);
        wait_until("it waits for its request", || has("CapEff:\t0000000000000000"));
        assert!(
            has("CapPrm:\t0000000000200000")
                && has("CapInh:\t0000000000000000")
                && has("CapAmb:\t0000000000000000"),
            "{}",
            of("status")
        );
        assert!(has("NoNewPrivs:\t1"), "{}", of("status"));
        assert_eq!((of("environ").as_str(), of("cmdline").as_str()), ("", "holdfast-helper\0"));
        assert_eq!(std::fs::read_link(format!("/proc/{}/cwd", child.id())).unwrap().to_str(), Some("/"));
        let open = || std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count();
        wait_until("nothing is open but standard input, output and error", || open() == 3);
        child.stdin.take().unwrap().write_all(STATUS.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(host.lines().len(), 1);
    });
}
