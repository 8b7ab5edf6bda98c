//! The time synchronisation of the host.
//!
//! Input: the mark file of systemd-timesyncd, and chronyd's answer to `tracking` on its local port, which any process
//! on the host may ask. Output: kept or not. The kernel's own status (`adjtimex`) is not read: the unit's system call
//! filter blocks every call that could also set the clock. Deliberately absent: the time itself, from any source.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tokio::net::UdpSocket;

use crate::model::clock_trust::Synchrony;

/// Made at the first synchronisation after the start of the machine.
const TIMESYNCD: &str = "/run/systemd/timesync/synchronized";

const CHRONYD_PORT: u16 = 323;

/// The daemon is on this machine: without an answer in this time it does not run.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

pub async fn ask() -> Synchrony {
    if Path::new(TIMESYNCD).exists() {
        return Synchrony::Kept;
    }
    match tokio::time::timeout(ANSWER_WITHIN, chronyd(CHRONYD_PORT)).await {
        Ok(Ok(Synchrony::Kept)) => Synchrony::Kept,
        Ok(Ok(Synchrony::Unkept) | Err(_)) | Err(_) => Synchrony::Unkept,
    }
}

/// The length of a question and of its answer; a shorter question is not answered.
const TRACKING_BYTES: usize = 104;

/// `tracking`, in version 6 of chronyd's protocol.
const fn question() -> [u8; TRACKING_BYTES] {
    let mut bytes = [0; TRACKING_BYTES];
    let (version, is_question, tracking) = (6, 1, 33);
    bytes[0] = version;
    bytes[1] = is_question;
    bytes[5] = tracking;
    bytes
}

async fn chronyd(port: u16) -> Result<Synchrony, std::io::Error> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect((Ipv4Addr::LOCALHOST, port)).await?;
    socket.send(&question()).await?;
    let mut answer = [0; TRACKING_BYTES];
    let length = socket.recv(&mut answer).await?;
    Ok(answer.get(..length).map_or(Synchrony::Unkept, read))
}

/// Accepts a successful answer of this version to this question. The daemon must follow a source or be one, and its
/// leap indicator must not say that it is unsynchronised.
fn read(answer: &[u8]) -> Synchrony {
    let two = |at: usize| answer.get(at..at + 2).and_then(|two| two.try_into().ok()).map(u16::from_be_bytes);
    let (version, is_answer) = (answer.first() == Some(&6), answer.get(1) == Some(&2));
    let header = (two(4), two(6), two(8)) == (Some(33), Some(5), Some(0));
    let (stratum, leap) = (two(52), two(54));
    let follows =
        stratum.is_some_and(|stratum| (1..16).contains(&stratum)) && leap.is_some_and(|leap| leap < 3);
    if version && is_answer && header && follows { Synchrony::Kept } else { Synchrony::Unkept }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As chronyd 4.3 answers, with the parts that are read.
    fn answer(stratum: u8, leap: u8) -> [u8; TRACKING_BYTES] {
        let mut bytes = [0; TRACKING_BYTES];
        for (at, value) in [(0, 6), (1, 2), (5, 33), (7, 5), (53, stratum), (55, leap)] {
            bytes[at] = value;
        }
        bytes
    }

    #[test]
    fn only_a_whole_answer_of_a_daemon_that_follows_counts() {
        assert_eq!(read(&answer(3, 0)), Synchrony::Kept);
        assert_eq!(read(&answer(10, 1)), Synchrony::Kept, "a leap second is announced");
        for (stratum, leap) in [(0, 0), (16, 0), (3, 3), (0, 3)] {
            assert_eq!(read(&answer(stratum, leap)), Synchrony::Unkept, "{stratum} {leap}");
        }
        for at in [0, 1, 5, 7, 9] {
            let mut other = answer(3, 0);
            other[at] += 1;
            assert_eq!(read(&other), Synchrony::Unkept, "byte {at}");
        }
        for length in 0..56 {
            assert_eq!(read(&answer(3, 0)[..length]), Synchrony::Unkept, "{length} bytes");
        }
    }

    /// One daemon that answers on a port of this machine, and one that does not exist.
    #[tokio::test]
    async fn a_daemon_is_asked_and_one_that_is_not_there_keeps_nothing() {
        let daemon = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = daemon.local_addr().unwrap().port();
        let answers = async {
            let mut asked = [0; 200];
            let (length, from) = daemon.recv_from(&mut asked).await.unwrap();
            assert_eq!(asked[..length], question());
            daemon.send_to(&answer(2, 0), from).await.unwrap();
        };
        let (kept, ()) = tokio::join!(chronyd(port), answers);
        assert_eq!(kept.unwrap(), Synchrony::Kept);
        drop(daemon);
        assert!(chronyd(port).await.is_err());
    }
}
