//! What comes in: one flat JSON object of at most 4 KiB within five seconds, read to its end and parsed strictly.

use std::fmt;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::names::{FsUuid, TargetName};
use crate::reply::{Code, Refusal};

/// The longest request.
const BYTES_MAX: usize = 4096;
/// From the start until the end of the request was read.
const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Mount,
    Unmount,
    Status,
}

impl Verb {
    /// All of them; `sudoers/holdfast-helper` has a line for each.
    pub const ALL: [Self; 3] = [Self::Mount, Self::Unmount, Self::Status];

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Unmount => "unmount",
            Self::Status => "status",
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
}

impl Request {
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Mount { .. } => Verb::Mount,
            Self::Unmount { .. } => Verb::Unmount,
            Self::Status => Verb::Status,
        }
    }

    pub const fn target(&self) -> Option<&TargetName> {
        match self {
            Self::Mount { target, .. } | Self::Unmount { target } => Some(target),
            Self::Status => None,
        }
    }
}

/// What a caller may ask for beside `nosuid,nodev,noexec`, which nobody can ask away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountOption {
    ReadOnly,
    NoAccessTimes,
}

/// Reads the one request. An argument, where there is one, must name the same verb.
pub fn read(argument: Option<Verb>) -> Result<Request, Refusal> {
    let bytes = until_end(std::io::stdin().as_fd(), Instant::now() + PATIENCE)?;
    let request = parse(&bytes)?;
    match argument {
        Some(verb) if verb != request.verb() => {
            let says =
                format!("the argument says {}, the request {}", verb.as_str(), request.verb().as_str());
            Err(Refusal::new(Code::Argv, says))
        }
        _ => Ok(request),
    }
}

fn until_end(input: impl AsFd, deadline: Instant) -> Result<Vec<u8>, Refusal> {
    let failed = |error| Refusal::new(Code::Env, format!("standard input cannot be read: {error}"));
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; BYTES_MAX + 1];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&left)) {
            Ok(0) => {
                let says =
                    "the request did not end within 5 s: the caller writes it at once and closes its side";
                return Err(Refusal::new(Code::Timeout, says));
            }
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
            return Err(Refusal::new(Code::Size, format!("a request has at most {BYTES_MAX} bytes")));
        }
    }
}

/// Lets the other side of a connection finish what it writes, for a moment: a connection that is closed over unread bytes
/// takes its reply along.
pub fn hear_out() {
    const MOMENT: Duration = Duration::from_secs(1);
    let (input, output) = (std::io::stdin(), std::io::stdout());
    // Refused by whatever is no connection, and then there is nothing to wait for.
    if rustix::net::shutdown(&output, rustix::net::Shutdown::Write).is_ok() {
        let _whatever_it_was = until_end(input.as_fd(), Instant::now() + MOMENT);
    }
}

fn parse(bytes: &[u8]) -> Result<Request, Refusal> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Refusal::new(Code::Encoding, "the request is not UTF-8"))?;
    let Flat(fields) = serde_json::from_str(text).map_err(|error| {
        Refusal::new(Code::Syntax, format!("the request is not one JSON object: {error}"))
    })?;
    let mut fields = Fields::take(fields)?;
    let verb = fields.text("verb")?;
    let request = match Verb::named(&verb) {
        Some(Verb::Mount) => Request::Mount {
            target: fields.text("target")?.try_into()?,
            uuid: fields.text("uuid")?.try_into()?,
            options: options(fields.list("options")?)?,
        },
        Some(Verb::Unmount) => Request::Unmount { target: fields.text("target")?.try_into()? },
        Some(Verb::Status) => Request::Status,
        None => return Err(Refusal::new(Code::Range, "`verb` is one of mount, unmount, status")),
    };
    fields.nothing_left(request.verb())?;
    Ok(request)
}

fn options(words: Vec<String>) -> Result<Vec<MountOption>, Refusal> {
    let mut options = Vec::new();
    for word in words {
        let option = match word.as_str() {
            "ro" => MountOption::ReadOnly,
            "noatime" => MountOption::NoAccessTimes,
            _ => {
                return Err(Refusal::new(
                    Code::MountOpt,
                    "`options` may hold `ro` and `noatime`, nothing else",
                ));
            }
        };
        if options.contains(&option) {
            return Err(Refusal::new(Code::MountOpt, "an option is named twice"));
        }
        options.push(option);
    }
    Ok(options)
}

/// The fields of a request that nobody has taken yet.
struct Fields(Vec<(String, Field)>);

impl Fields {
    fn take(fields: Vec<(String, Field)>) -> Result<Self, Refusal> {
        for (at, (name, field)) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(Refusal::new(Code::DupKey, "a field is given twice"));
            }
            if *field == Field::Nested {
                return Err(Refusal::new(
                    Code::Depth,
                    "a request holds no objects, and no lists but of words",
                ));
            }
        }
        Ok(Self(fields))
    }

    fn any(&mut self, name: &str) -> Option<Field> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn text(&mut self, name: &str) -> Result<String, Refusal> {
        match self.any(name) {
            Some(Field::Text(text)) => Ok(text),
            Some(_) => Err(Refusal::new(Code::Range, format!("`{name}` is a text"))),
            None => Err(Refusal::new(Code::Missing, format!("`{name}` is missing"))),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<String>, Refusal> {
        match self.any(name) {
            Some(Field::List(words)) => Ok(words),
            Some(_) => Err(Refusal::new(Code::MountOpt, format!("`{name}` is a list of words"))),
            None => Ok(Vec::new()),
        }
    }

    fn nothing_left(self, verb: Verb) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(Code::UnknownField, format!("{} knows fewer fields than were given", verb.as_str())))
    }
}

/// A JSON object as it stands there, doubled names included.
struct Flat(Vec<(String, Field)>);

#[derive(Debug, PartialEq, Eq)]
enum Field {
    Text(String),
    List(Vec<String>),
    Nested,
    Other,
}

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Flat;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Flat, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Flat(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyField)
    }
}

struct AnyField;

impl<'de> Visitor<'de> for AnyField {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field, A::Error> {
        let mut words = Vec::new();
        let mut nested = false;
        let mut other = false;
        while let Some(field) = seq.next_element::<Field>()? {
            match field {
                Field::Text(word) => words.push(word),
                Field::List(_) | Field::Nested => nested = true,
                Field::Other => other = true,
            }
        }
        Ok(if nested {
            Field::Nested
        } else if other {
            Field::Other
        } else {
            Field::List(words)
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Nested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";

    fn code(bytes: impl AsRef<[u8]>) -> &'static str {
        parse(bytes.as_ref()).err().map_or("taken", |refusal| refusal.code.as_str())
    }

    fn mount(options: &str) -> String {
        format!(r#"{{"verb":"mount","target":"usb1","uuid":"{UUID}","options":{options}}}"#)
    }

    #[test]
    fn what_is_said_plainly_is_heard() {
        let request = parse(mount(r#"["noatime","ro"]"#).as_bytes()).unwrap();
        let Request::Mount { target, uuid, options } = request else { panic!("{request:?}") };
        assert_eq!((target.as_str(), uuid.as_str()), ("usb1", UUID));
        assert_eq!(options, [MountOption::NoAccessTimes, MountOption::ReadOnly]);
        assert_eq!(parse(b" {\"verb\":\"status\"}\n").unwrap(), Request::Status);
        assert!(matches!(parse(br#"{"target":"a","verb":"unmount"}"#), Ok(Request::Unmount { .. })));
    }

    #[test]
    fn every_other_shape_has_its_code() {
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
            (r#"{"verb":"golden-build"}"#, "E_RANGE"),
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
    fn options_are_words_of_a_closed_set() {
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
    fn no_text_makes_it_panic_or_hang() {
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
