//! Tests of the systemd watchdog.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::guest::until;
use crate::windows::{guest, stack_status};

/// systemd's side of the socket: how often it received a message that the controller works.
fn heard(socket: &UnixDatagram) -> usize {
    let mut bytes = [0; 512];
    let mut count = 0;
    while let Ok(length) = socket.recv(&mut bytes) {
        count += usize::from(bytes[..length].starts_with(b"WATCHDOG=1"));
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watchdog_is_notified_by_a_working_controller_only() {
    let (_agent, guest, _world, _) = guest().await;
    let socket = UnixDatagram::bind(guest.path("notify")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut running = guest.run_notifying(&guest.path("notify"), Duration::from_millis(300));
    for _ in 0..3 {
        until("it says that it works", || heard(&socket) > 0, || stack_status(&guest).to_string()).await;
    }
    running.sleep().await;
    // The whole process is stopped: only the messages from before it are there.
    heard(&socket);
    assert_eq!(heard(&socket), 0);
    running.wake();
    until("it goes on", || heard(&socket) > 0, || stack_status(&guest).to_string()).await;
}
