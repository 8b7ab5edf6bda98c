//! A receiver of notices: of customers, and of alerts.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How the receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It takes what it is sent.
    Taken,
    /// It is switched off by its operator, and keeps nothing.
    Gone,
}

/// The listener for notices. It is there until the test ends.
pub struct Notices {
    reported: Arc<Mutex<Vec<(String, Instant)>>>,
    answer: Arc<Mutex<Answer>>,
    url: String,
}

impl Notices {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/read", listener.local_addr().unwrap());
        let reported = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(Answer::Taken));
        let (keeps, answers) = (Arc::clone(&reported), Arc::clone(&answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let answer = *answers.lock().unwrap();
                if let Some(request) = taken(stream, answer).filter(|_| answer == Answer::Taken) {
                    keeps.lock().unwrap().push((request, Instant::now()));
                }
            }
        });
        Self { reported, answer, url }
    }

    /// From the next request on.
    pub fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
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
fn taken(mut stream: TcpStream, answer: Answer) -> Option<String> {
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
    let status = match answer {
        Answer::Taken => "200 OK",
        Answer::Gone => "410 Gone",
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
