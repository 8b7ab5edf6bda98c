//! Entries as datagrams of systemd's native journal protocol.
//!
//! The closed fields become fields of the journal, `HOLDFAST_` before each name, so that `journalctl
//! HOLDFAST_CORRELATION_ID=…` finds an entry. The message has all details as text; `HOLDFAST_DETAIL` has them as JSON.

use std::io;
use std::os::unix::net::UnixDatagram;

use tracing::Level;

use crate::entry::Entry;
use crate::origin::Service;

/// Where systemd's journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";

/// A connection to the journal.
#[derive(Debug)]
pub struct Journal(UnixDatagram);

impl Journal {
    /// Connects to systemd's journal.
    pub fn connect() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(SOCKET)?;
        // A journal that hangs must not hold up a program.
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Sends one entry, whole or not at all.
    pub fn send(&self, entry: &Entry) -> io::Result<()> {
        self.0.send(&datagram(entry)).map(drop)
    }
}

/// The numbers of syslog.
const fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}

fn datagram(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    let mut put = |name: &str, value: &str| {
        bytes.extend_from_slice(name.as_bytes());
        // The form with a length: a value with a line end cannot begin a field.
        bytes.push(b'\n');
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    };
    put("MESSAGE", &entry.sentence());
    put("PRIORITY", priority(entry.level));
    put("SYSLOG_IDENTIFIER", entry.service.as_str());
    put("HOLDFAST_LEVEL", entry.level.as_str());
    put("HOLDFAST_SERVICE", Service::as_str(entry.service));
    let ids = [
        ("HOLDFAST_HOST", entry.host.map(|id| id.to_string())),
        ("HOLDFAST_GUEST", entry.guest.map(|id| id.to_string())),
        ("HOLDFAST_CUSTOMER", entry.customer.as_ref().map(ToString::to_string)),
        ("HOLDFAST_REQUEST_ID", entry.request_id.map(|id| id.to_string())),
        ("HOLDFAST_CORRELATION_ID", entry.correlation_id.map(|id| id.to_string())),
        ("HOLDFAST_ACTION", entry.action.as_ref().map(|word| word.as_str().to_owned())),
        ("HOLDFAST_RESULT", entry.result.as_ref().map(|word| word.as_str().to_owned())),
    ];
    for (name, value) in ids {
        if let Some(value) = value {
            put(name, &value);
        }
    }
    if let (false, Ok(detail)) = (entry.detail.is_empty(), serde_json::to_string(&entry.detail)) {
        put("HOLDFAST_DETAIL", &detail);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;

    /// Reads a datagram as the journal does.
    fn fields(mut bytes: &[u8]) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let name = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = u64::from_le_bytes(bytes[end + 1..end + 9].try_into().unwrap()) as usize;
            let value = String::from_utf8(bytes[end + 9..end + 9 + length].to_vec()).unwrap();
            assert_eq!(bytes[end + 9 + length], b'\n');
            bytes = &bytes[end + 10 + length..];
            assert!(fields.insert(name, value).is_none(), "each name once");
        }
        fields
    }

    #[test]
    fn closed_fields_are_fields_of_the_journal() {
        let id = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55";
        let mut entry = Entry::new(Timestamp::UNIX_EPOCH, Level::WARN, Service::Agentd);
        for (name, text) in [
            ("message", "a step failed\nHOLDFAST_CORRELATION_ID=forged"),
            ("correlation_id", id),
            ("result", "failed"),
            ("problem", "no space"),
        ] {
            entry.set(name, text.to_owned());
        }
        let fields = fields(&datagram(&entry));
        let expected = [
            ("HOLDFAST_CORRELATION_ID", id),
            ("HOLDFAST_DETAIL", r#"{"problem":"no space"}"#),
            ("HOLDFAST_LEVEL", "WARN"),
            ("HOLDFAST_RESULT", "failed"),
            ("HOLDFAST_SERVICE", "agentd"),
            ("MESSAGE", "a step failed\nHOLDFAST_CORRELATION_ID=forged result=failed problem=\"no space\""),
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "agentd"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, BTreeMap::from(expected));
    }

    #[test]
    fn an_entry_reaches_a_listening_socket_and_a_full_one_refuses() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let journal = Journal(ours);
        let mut entry = Entry::new(Timestamp::UNIX_EPOCH, Level::INFO, Service::Hubd);
        entry.set("message", "begun".to_owned());
        journal.send(&entry).unwrap();
        let mut bytes = [0; 4096];
        let length = theirs.recv(&mut bytes).unwrap();
        assert_eq!(fields(&bytes[..length])["MESSAGE"], "begun");
        let refused = (0..100_000).find_map(|_| journal.send(&entry).err());
        assert_eq!(refused.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }
}
