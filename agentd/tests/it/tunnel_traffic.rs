//! Test that a tunnel carries traffic without the agent.
//!
//! Three processes of their own: a stand-in tunnel, which forwards and answers `/ready` as cloudflared does, the agent that
//! looks at it, and this test with the far end. The agent is killed in the middle of a connection.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use crate::daemon::{PATIENCE, Place, Running, started, status_that};

const FAR_END: &str = "HOLDFAST_STAND_IN_FAR_END";

/// The stand-in tunnel, in a process of its own: this program, called for this test alone.
#[test]
#[ignore = "not a test: the stand-in tunnel, which `traffic_goes_on_while_the_agent_is_dead` starts"]
fn stand_in_tunnel() {
    let Ok(far_end) = std::env::var(FAR_END) else { return };
    let far_end: SocketAddr = far_end.parse().unwrap();
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (entry, metrics) = (bind(), bind());
    println!("\nPORTS {} {}", entry.local_addr().unwrap(), metrics.local_addr().unwrap());
    thread::spawn(move || {
        for stream in metrics.incoming() {
            let mut stream = stream.unwrap();
            let _length = stream.read(&mut [0; 512]);
            let _gone = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n{\"status\":200,\"readyConnections\":4}");
        }
    });
    for near in entry.incoming() {
        let (near, far) = (near.unwrap(), TcpStream::connect(far_end).unwrap());
        let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
        for (mut from, mut to) in ways {
            thread::spawn(move || {
                let _ended = std::io::copy(&mut from, &mut to);
                let _closed = to.shutdown(std::net::Shutdown::Write);
            });
        }
    }
}

/// A far end that sends back each line.
fn far_end() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                    if stream.write_all(line.as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    at
}

struct Traffic(BufReader<TcpStream>);

impl Traffic {
    fn through(entry: SocketAddr) -> Self {
        let stream = TcpStream::connect(entry).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn goes(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut back = String::new();
        self.0.read_line(&mut back).unwrap();
        assert_eq!(back.trim_end(), line);
    }
}

#[expect(clippy::disallowed_methods, reason = "the stand-in tunnel is this program")]
fn start_stand_in(far_end: SocketAddr) -> (Running, SocketAddr, SocketAddr) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tunnel_traffic::stand_in_tunnel", "--ignored", "--nocapture"]);
    command.env(FAR_END, far_end.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let running = Running(child);
    let ports =
        lines.map(Result::unwrap).find_map(|line| line.strip_prefix("PORTS ").map(str::to_owned)).unwrap();
    let (entry, metrics) = ports.split_once(' ').unwrap();
    (running, entry.parse().unwrap(), metrics.parse().unwrap())
}

#[test]
fn traffic_goes_on_while_the_agent_is_dead() {
    let (_tunnel, entry, metrics) = start_stand_in(far_end());
    let place = Place::new();
    place.enrol();
    let tunnel = format!(
        "[[tunnel]]\nname = \"stand-in\"\nunit = \"holdfast-stand-in-tunnel.service\"\nmetrics = \"{metrics}\"\nprobe = \"tcp://{entry}\"\n"
    );
    place.write("agent.toml", &format!("{}{tunnel}", place.settings()));
    let mut agent = started(&place);
    // Systemd may not run here, or knows no such unit: the tunnel's own answers are what counts.
    let looks = |status: &serde_json::Value| {
        let tunnel = &status["sections"]["agent"]["tunnels"][0];
        tunnel["connections"]["ready"] == 4 && tunnel["probe"]["result"] == "answered"
    };
    status_that(&place, looks);
    let mut traffic = Traffic::through(entry);
    traffic.goes("while the agent looks");
    agent.0.kill().unwrap();
    assert!(!agent.0.wait().unwrap().success(), "it was killed");
    traffic.goes("over the same connection");
    Traffic::through(entry).goes("over a new one");
}
