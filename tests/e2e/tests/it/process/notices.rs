//! A receiver of notices: of customers, and of alerts.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The listener for notices. It is there until the test ends.
pub struct Notices {
    reported: Arc<Mutex<Vec<(String, Instant)>>>,
    url: String,
}

impl Notices {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/read", listener.local_addr().unwrap());
        let reported = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&reported);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = taken(stream) {
                    keeps.lock().unwrap().push((request, Instant::now()));
                }
            }
        });
        Self { reported, url }
    }

    /// The hub's settings for it.
    pub fn settings(&self, secret_file: &str) -> String {
        format!("[[escrow_notice]]\nurl = \"{}\"\nsecret_file = \"{secret_file}\"\n", self.url)
    }

    /// All notices that were received.
    pub fn reported(&self) -> Vec<String> {
        self.with_times().into_iter().map(|(request, _)| request).collect()
    }

    /// All notices that were received, with their times.
    pub fn with_times(&self) -> Vec<(String, Instant)> {
        self.reported.lock().unwrap().clone()
    }

    /// Where it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// One request with its body, answered.
fn taken(mut stream: TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.and_then(|length| length.trim().parse().ok()).unwrap_or(0) {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
