//! Tests of the bridge of scratch guests, in namespaces.
//!
//! The test runs the unit's own lines. Each way out is tried with the rules. It is also tried without them, to prove
//! that the test would notice it.

#![expect(clippy::disallowed_methods, reason = "ip, nft and sysctl are asked as systemd would ask them")]

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const UNIT: &str = include_str!("../../../../../systemd/holdfast-test-bridge.service");
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/agent/test-bridge.nft");
const LISTENER: &str = "10.254.254.1:8443";

/// Allowed connections are answered at once; blocked ones never are, so the wait for them is short.
const LET_IN: Duration = Duration::from_secs(10);
const SHUT_OUT: Duration = Duration::from_millis(400);

/// Three namespaces in a row: a guest on the bridge, the host, and a machine behind the host. They are removed with
/// this value.
struct Net {
    guest: String,
    host: String,
    behind: String,
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.guest, &self.host, &self.behind] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

pub(super) fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Does something in a namespace. A socket that is made there stays there.
pub(super) fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
    let there = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(there).join().unwrap())
}

impl Net {
    fn new() -> Self {
        let name = |of: &str| format!("hf-{of}-{}", std::process::id());
        let net = Self { guest: name("guest"), host: name("host"), behind: name("behind") };
        for namespace in [&net.guest, &net.host, &net.behind] {
            run(&["ip", "netns", "add", namespace]);
            net.ip(namespace, "link set lo up");
        }
        // The host's link to the outside, to which it forwards.
        net.ip(&net.host, &format!("link add out type veth peer name in netns {}", net.behind));
        for (namespace, line) in [
            (&net.host, "address add 10.98.0.1/24 dev out"),
            (&net.host, "link set out up"),
            (&net.host, "-6 address add fd00:98::1/64 dev out nodad"),
            (&net.behind, "address add 10.98.0.2/24 dev in"),
            (&net.behind, "link set in up"),
            (&net.behind, "route add default via 10.98.0.1"),
        ] {
            net.ip(namespace, line);
        }
        net.on_host(&["sysctl", "-q", "net.ipv4.ip_forward=1"]);
        net
    }

    fn ip(&self, namespace: &str, line: &str) {
        let words: Vec<&str> = ["ip", "-n", namespace].into_iter().chain(line.split(' ')).collect();
        run(&words);
    }

    fn on_host(&self, words: &[&str]) {
        let all: Vec<&str> =
            ["ip", "netns", "exec", &self.host].into_iter().chain(words.iter().copied()).collect();
        run(&all);
    }

    /// The lines of the unit, as systemd reads them.
    fn unit(&self, key: &str) {
        let values = BTreeMap::from([
            ("${BRIDGE}", "hftest0"),
            ("${ADDRESS}", "10.254.254.1"),
            ("${PREFIX}", "30"),
            ("${PORT}", "8443"),
            ("/usr/lib/holdfast/test-bridge.nft", RULES),
        ]);
        let lines = UNIT.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        for line in lines.map(|line| line.trim_start_matches('-')) {
            let line = values.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
            self.on_host(&line.split(' ').collect::<Vec<_>>());
        }
    }

    fn plug_the_guest_in(&self) {
        self.ip(&self.host, &format!("link add veth900i0 type veth peer name eth0 netns {}", self.guest));
        self.ip(&self.host, "link set veth900i0 master hftest0 up");
        for line in [
            "address add 10.254.254.2/30 dev eth0",
            "-6 address add fd00:98::99/64 dev eth0 nodad",
            "link set eth0 up",
            // What a hostile guest would do.
            "route add default via 10.254.254.1",
        ] {
            self.ip(&self.guest, line);
        }
    }

    fn lets_in(&self, to: &str, patience: Duration) -> bool {
        let to: SocketAddr = to.parse().unwrap();
        within(&self.guest, || match TcpStream::connect_timeout(&to, patience) {
            Ok(_) => true,
            Err(error) => {
                let refused = error.kind() == ErrorKind::ConnectionRefused;
                assert!(!refused, "{to}: the way is open, and the test has no listener there");
                false
            }
        })
    }
}

fn listen(namespace: &str, address: &str) -> TcpListener {
    within(namespace, || TcpListener::bind(address).unwrap())
}

#[test]
fn what_is_on_the_bridge_of_tests_reaches_the_agent_and_nothing_else() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "CI runs as root");
        println!("left out: network namespaces take root");
        return;
    }
    let net = Net::new();
    net.unit("ExecStart");
    net.plug_the_guest_in();
    let _all = [
        listen(&net.host, "0.0.0.0:22"),
        listen(&net.host, "0.0.0.0:8443"),
        listen(&net.host, "[fd00:98::1]:8006"),
        listen(&net.behind, "0.0.0.0:80"),
    ];
    let datagrams = within(&net.host, || UdpSocket::bind("0.0.0.0:53").unwrap());
    let [ssh, other_address, other_port] = ["10.254.254.1:22", "10.98.0.1:8443", "10.98.0.1:22"];
    let (world, v6) = ("10.98.0.2:80", "[fd00:98::1]:8006");

    assert!(net.lets_in(LISTENER, LET_IN), "the agent's own door");
    for shut in [ssh, other_address, other_port, world, v6] {
        assert!(!net.lets_in(shut, SHUT_OUT), "{shut}");
    }
    within(&net.guest, || {
        let from = UdpSocket::bind("10.254.254.2:0").unwrap();
        from.send_to(b"question", "10.254.254.1:53").unwrap();
    });
    datagrams.set_read_timeout(Some(SHUT_OUT)).unwrap();
    assert!(datagrams.recv_from(&mut [0; 16]).is_err(), "a datagram came through");

    // The host's rules are flushed. Its own services are then reached, which the controller finds; the outside is not.
    net.on_host(&["nft", "flush", "ruleset"]);
    for open in [ssh, other_address] {
        assert!(net.lets_in(open, LET_IN), "{open}: this test would have seen it open");
    }
    assert!(!net.lets_in(world, SHUT_OUT), "what came from there was forwarded");
    net.on_host(&["ip", "-4", "rule", "delete", "priority", "8443"]);
    assert!(net.lets_in(world, LET_IN), "this test would have seen it forwarded");
    net.on_host(&["ip", "-4", "rule", "add", "iif", "hftest0", "priority", "8443", "prohibit"]);

    // The bridge is made again with its rules, and is removed without a trace.
    net.on_host(&["ip", "link", "delete", "veth900i0"]);
    net.on_host(&["nft", "add", "table", "netdev", "holdfast_test"]);
    net.unit("ExecStopPost");
    net.unit("ExecStart");
    net.plug_the_guest_in();
    assert!(net.lets_in(LISTENER, LET_IN) && !net.lets_in(ssh, SHUT_OUT));
    net.unit("ExecStopPost");
    let left =
        Command::new("ip").args(["netns", "exec", &net.host, "nft", "list", "ruleset"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    let rules = Command::new("ip").args(["-n", &net.host, "rule"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&rules.stdout).contains("hftest0"));
}
