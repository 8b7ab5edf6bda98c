//! The mail server of Debian's `python3-aiosmtpd`, started for one test.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

pub struct MailServer {
    pub port: u16,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _files: tempfile::TempDir,
}

impl MailServer {
    /// `mode` is `starttls`, `tls` or `plain`. Without the package the test fails: no test of mail is left out.
    pub fn start(mode: &str, certificate: &str, key: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (certificate_file, key_file) =
            (files.path().join("certificate.pem"), files.path().join("key.pem"));
        std::fs::write(&certificate_file, certificate).unwrap();
        std::fs::write(&key_file, key).unwrap();
        let program = files.path().join("mail_server.py");
        std::fs::write(&program, include_str!("mail_server.py")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a real mail server is the point of the test")]
        let mut server = Command::new("/usr/bin/python3");
        server.arg(program).arg(mode).arg(certificate_file).arg(key_file).stdout(Stdio::piped());
        let mut child = server.spawn().expect("python3 is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().expect("the mail server starts: install python3-aiosmtpd").unwrap();
        Self { port: port.parse().unwrap(), child, lines, _files: files }
    }

    /// The next mail that came in.
    pub fn next_mail(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Ends the server, and returns the mails that were not taken yet.
    pub fn stop(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        let rest: Vec<Value> =
            self.lines.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        self.child.wait().unwrap();
        rest
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
