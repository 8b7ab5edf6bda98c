//! Request: one flat JSON object, bounded and parsed strictly.
//!
//! It has at most 4 KiB and must end within five seconds.

use std::fmt;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::names::{FsUuid, TargetName};
use crate::reply::{Refusal, refusal};

/// The longest request.
const BYTES_MAX: usize = 4096;
/// From the start until the end of the request was read.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The possible requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Mount,
    Unmount,
    Status,
    GoldenBuild,
}

impl Verb {
    /// All of them; `sudoers/holdfast-helper` has a line for each.
    pub const ALL: [Self; 4] = [Self::Mount, Self::Unmount, Self::Status, Self::GoldenBuild];

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Unmount => "unmount",
            Self::Status => "status",
            Self::GoldenBuild => "golden-build",
        }
    }

    pub const fn changes_something(self) -> bool {
        !matches!(self, Self::Status)
    }
}

/// A request in types that cannot be wrong.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Mount { target: TargetName, uuid: FsUuid, options: Vec<MountOption> },
    Unmount { target: TargetName },
    Status,
    GoldenBuild,
}

impl Request {
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Mount { .. } => Verb::Mount,
            Self::Unmount { .. } => Verb::Unmount,
            Self::Status => Verb::Status,
            Self::GoldenBuild => Verb::GoldenBuild,
        }
    }

    pub const fn target(&self) -> Option<&TargetName> {
        let (Self::Mount { target, .. } | Self::Unmount { target }) = self else { return None };
        Some(target)
    }
}

/// Mount options a caller may add to `nosuid,nodev,noexec`, which are always set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum MountOption {
    #[serde(rename = "ro")]
    ReadOnly,
    #[serde(rename = "noatime")]
    NoAccessTimes,
}

/// Reads the one request. An argument, where there is one, must name the same verb.
pub fn read(argument: Option<Verb>) -> Result<Request, Refusal> {
    let bytes = until_end(std::io::stdin().as_fd(), Instant::now() + TIMEOUT)?;
    let request = parse(&bytes)?;
    if argument.is_some_and(|verb| verb != request.verb()) {
        return Err(refusal!(Argv, "argument and request name different verbs"));
    }
    Ok(request)
}

fn until_end(input: impl AsFd, deadline: Instant) -> Result<Vec<u8>, Refusal> {
    let failed = |error| refusal!(Env, "standard input cannot be read: {error}");
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; BYTES_MAX + 1];
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).unwrap_or_default();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&left)) {
            Ok(0) => return Err(refusal!(Timeout, "the request has no end after 5 s")),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed(error)),
        }
        match rustix::io::read(&input, &mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(read) => bytes.extend(chunk.iter().take(read)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(failed(error)),
        }
        if bytes.len() > BYTES_MAX {
            return Err(refusal!(Size, "a request has at most {BYTES_MAX} bytes"));
        }
    }
}

/// Lets the other side of a connection finish what it writes, for a moment: a connection that is closed over unread bytes
/// takes its reply along.
pub fn drain_input() {
    const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
    let (input, output) = (std::io::stdin(), std::io::stdout());
    // Refused by whatever is no connection, and then there is nothing to wait for.
    if rustix::net::shutdown(&output, rustix::net::Shutdown::Write).is_ok() {
        let _whatever_it_was = until_end(input.as_fd(), Instant::now() + DRAIN_TIMEOUT);
    }
}

fn parse(bytes: &[u8]) -> Result<Request, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| refusal!(Encoding, "the request is not UTF-8"))?;
    let Fields(fields) = serde_json::from_str(text)
        .map_err(|error| refusal!(Syntax, "the request is not one JSON object: {error}"))?;
    let mut fields = Fields::checked(fields)?;
    let verb = fields.text("verb")?;
    let request = match Verb::named(&verb) {
        Some(Verb::Mount) => Request::Mount {
            target: fields.text("target")?.try_into()?,
            uuid: fields.text("uuid")?.try_into()?,
            options: fields.options()?,
        },
        Some(Verb::Unmount) => Request::Unmount { target: fields.text("target")?.try_into()? },
        Some(Verb::Status) => Request::Status,
        Some(Verb::GoldenBuild) => Request::GoldenBuild,
        None => return Err(refusal!(Range, "`verb` is one of mount, unmount, status, golden-build")),
    };
    let unknown = || refusal!(UnknownField, "{verb} was given unknown fields");
    fields.0.is_empty().then_some(request).ok_or_else(unknown)
}

/// The fields of a JSON object as they are written there, including duplicate names; taken out one by one.
struct Fields(Vec<(String, Value)>);

impl Fields {
    fn checked(fields: Vec<(String, Value)>) -> Result<Self, Refusal> {
        for (at, (name, value)) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(refusal!(DupKey, "a field is given twice"));
            }
            let nested = |value: &Value| value.is_object() || value.is_array();
            if value.is_object() || value.as_array().is_some_and(|inner| inner.iter().any(nested)) {
                return Err(refusal!(Depth, "a request must hold no objects, and only lists of strings"));
            }
        }
        Ok(Self(fields))
    }

    fn any(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn text(&mut self, name: &str) -> Result<String, Refusal> {
        match self.any(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(refusal!(Range, "`{name}` must be a string")),
            None => Err(refusal!(Missing, "`{name}` is missing")),
        }
    }

    fn options(&mut self) -> Result<Vec<MountOption>, Refusal> {
        let refused =
            || refusal!(MountOpt, "`options` may list `ro` and `noatime`, each once, and nothing else");
        let Some(value) = self.any("options") else { return Ok(Vec::new()) };
        let options: Vec<MountOption> = serde_json::from_value(value).map_err(|_| refused())?;
        match options.as_slice() {
            [one, other] if one == other => Err(refused()),
            [_, _, _, ..] => Err(refused()),
            _ => Ok(options),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Code;

    const UUID: &str = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";

    fn code(bytes: impl AsRef<[u8]>) -> &'static str {
        parse(bytes.as_ref()).err().map_or("taken", |refusal| refusal.code.as_str())
    }

    fn mount(options: &str) -> String {
        format!(r#"{{"verb":"mount","target":"usb1","uuid":"{UUID}","options":{options}}}"#)
    }

    #[test]
    fn valid_requests_parse() {
        let request = parse(mount(r#"["noatime","ro"]"#).as_bytes()).unwrap();
        let Request::Mount { target, uuid, options } = request else { panic!("{request:?}") };
        assert_eq!((target.as_str(), uuid.as_str()), ("usb1", UUID));
        assert_eq!(options, [MountOption::NoAccessTimes, MountOption::ReadOnly]);
        assert_eq!(parse(b" {\"verb\":\"status\"}\n").unwrap(), Request::Status);
        assert_eq!(parse(br#"{"verb":"golden-build"}"#).unwrap(), Request::GoldenBuild);
        assert!(matches!(parse(br#"{"target":"a","verb":"unmount"}"#), Ok(Request::Unmount { .. })));
    }

    #[test]
    fn invalid_requests_have_their_codes() {
        let deep = format!(r#"{{"verb":{}"a"{}}}"#, "[".repeat(120), "]".repeat(120));
        let abyss = format!(r#"{{"verb":{}"#, "[".repeat(2000));
        for (text, expected) in [
            ("", "E_SYNTAX"),
            ("{", "E_SYNTAX"),
            ("[]", "E_SYNTAX"),
            ("null", "E_SYNTAX"),
            ("{}", "E_MISSING"),
            ("{\"verb\":\"status\"}{\"verb\":\"status\"}", "E_SYNTAX"),
            ("{\"verb\":\"status\"}\0", "E_SYNTAX"),
            ("{\"verb\":\"sta\0tus\"}", "E_SYNTAX"),
            ("\u{feff}{\"verb\":\"status\"}", "E_SYNTAX"),
            (r#"{"verb":"status","verb":"status"}"#, "E_DUP_KEY"),
            (r#"{"verb":"status","v\u0065rb":"mount"}"#, "E_DUP_KEY"),
            (r#"{"verb":"status","target":"a"}"#, "E_UNKNOWN_FIELD"),
            (r#"{"verb":"unmount","target":"a","lazy":true}"#, "E_UNKNOWN_FIELD"),
            (r#"{"verb":"golden_build"}"#, "E_RANGE"),
            (r#"{"verb":"golden-build","dump":"/etc"}"#, "E_UNKNOWN_FIELD"),
            (r#"{"verb":"golden-build","target":"a"}"#, "E_UNKNOWN_FIELD"),
            (r#"{"verb":"Status"}"#, "E_RANGE"),
            (r#"{"verb":1}"#, "E_RANGE"),
            (r#"{"verb":null}"#, "E_RANGE"),
            (r#"{"verb":{"a":1}}"#, "E_DEPTH"),
            (deep.as_str(), "E_DEPTH"),
            (abyss.as_str(), "E_SYNTAX"),
            (r#"{"verb":"unmount"}"#, "E_MISSING"),
            (r#"{"verb":"unmount","target":"../a"}"#, "E_PATH"),
            (r#"{"verb":"unmount","target":["a"]}"#, "E_RANGE"),
            (r#"{"verb":"mount","target":"a","uuid":"x"}"#, "E_RANGE"),
        ] {
            assert_eq!(code(text), expected, "{text:.80}");
        }
        assert_eq!(code(b"{\"verb\":\"stat\xffus\"}"), "E_ENCODING");
    }

    #[test]
    fn mount_options_are_a_closed_set() {
        let long = format!("[\"{}\"]", "a".repeat(4000));
        for bad in [
            r#"["suid"]"#,
            r#"["dev"]"#,
            r#"["exec"]"#,
            r#"["bind"]"#,
            r#"["rbind"]"#,
            r#"["loop=/dev/loop0"]"#,
            r#"["X-mount.mkdir"]"#,
            r#"["x-systemd.automount"]"#,
            r#"["context=a"]"#,
            r#"["uid=0"]"#,
            r#"["remount"]"#,
            r#"["ro","ro"]"#,
            r#"[""]"#,
            r#"["ro,rw"]"#,
            r#"["rw"]"#,
            r#"["RO"]"#,
            r#"["ro\n"]"#,
            r#""ro""#,
            r#"[1]"#,
            long.as_str(),
        ] {
            assert_eq!(code(mount(bad)), "E_MOUNT_OPT", "{bad:.60}");
        }
        assert_eq!(code(mount("[]")), "taken");
    }

    #[test]
    fn no_input_causes_a_panic_or_hang() {
        let whole = mount(r#"["ro"]"#);
        for end in 0..whole.len() {
            assert_ne!(code(&whole[..end]), "taken");
        }
        for at in 0..whole.len() {
            for byte in [0, b'"', b'{', b'\\', 0x7f, 0xff] {
                let mut changed = whole.clone().into_bytes();
                changed[at] = byte;
                code(changed);
            }
        }
    }

    #[test]
    fn input_is_bounded_in_length_and_time() {
        let soon = Instant::now() + Duration::from_millis(50);
        let zero = std::fs::File::open("/dev/zero").unwrap();
        assert_eq!(until_end(&zero, soon).unwrap_err().code, Code::Size);
        let folder = std::fs::File::open("/").unwrap();
        assert_eq!(until_end(&folder, soon).unwrap_err().code, Code::Env);
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(until_end(&reader, soon).unwrap_err().code, Code::Timeout);
    }
}
