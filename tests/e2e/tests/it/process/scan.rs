//! A scan for secrets in files and memory.
//!
//! In: the secrets, and where to look: folders, a wire, the memory of a process. Out: where something was found, and
//! what. An empty result proves something only if the scan finds what is there. So the caller plants a canary, or names
//! the one place where the secret belongs.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use base64::Engine as _;
use serde_json::Value;

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundSecret {
    pub what: &'static str,
    pub place: String,
}

/// The secrets to search for, by the first two bytes of each form.
#[derive(Default)]
pub struct Secrets(HashMap<[u8; 2], Vec<(&'static str, Vec<u8>)>>);

impl Secrets {
    fn add(&mut self, what: &'static str, form: &[u8]) {
        let begins = [form[0], form[1]];
        self.0.entry(begins).or_default().push((what, form.to_vec()));
    }

    /// The words of a code: three of them in a row, or one with its number, as the page and the sheet show it.
    pub fn words(&mut self, words: &[String]) {
        for three in words.windows(3) {
            for between in [" ", "\n", "\r\n", "-", ", ", "\",\"", "\", \""] {
                let text = three.join(between);
                self.add("words", text.as_bytes());
                self.add("words", text.to_uppercase().as_bytes());
            }
        }
        for (number, word) in (1..).zip(words) {
            self.add("words", format!("{number}.  {word}").as_bytes());
        }
    }

    /// A key file: the key as text, as bytes, in hex, and as it is sent in a form. Half of it counts as a finding.
    pub fn key(&mut self, key_file: &str) {
        let file: Value = serde_json::from_str(key_file).unwrap();
        let text = file["data"].as_str().unwrap();
        let raw = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        assert_eq!(raw.len(), 32, "a key");
        let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        let escaped = |text: &str| text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        for half in [&text[..22], &text[22..], &hex[..32], &hex[32..]] {
            self.add("key", half.as_bytes());
            self.add("key", escaped(half).as_bytes());
        }
        for half in [&hex[..32], &hex[32..]] {
            self.add("key", half.to_uppercase().as_bytes());
        }
        for half in [&raw[..16], &raw[16..]] {
            self.add("key", half);
        }
    }

    /// A text as it is.
    pub fn text(&mut self, what: &'static str, text: &str) {
        self.add(what, text.as_bytes());
    }

    /// The secrets in these bytes.
    pub fn in_bytes(&self, bytes: &[u8]) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        for (at, pair) in bytes.windows(2).enumerate() {
            let Some(forms) = self.0.get(pair) else { continue };
            let here = forms.iter().filter(|(_, form)| bytes[at..].starts_with(form));
            found.extend(here.map(|(what, _)| *what));
        }
        found
    }

    /// The secrets in the files of a folder. Names are checked as well.
    pub fn in_folder(&self, folder: &Path) -> BTreeSet<FoundSecret> {
        let (mut all, mut files) = (BTreeSet::new(), 0);
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let place = path.display().to_string();
                assert!(!is_core(&path), "a core dump: {place}");
                let inside = match () {
                    () if kind.is_dir() => {
                        folders.push(path);
                        Vec::new()
                    }
                    // A program of ours, which is the same everywhere; and files that are removed during the scan.
                    () if !kind.is_file() || path.ends_with("usr/bin/guestd") => Vec::new(),
                    () => std::fs::read(&path).unwrap_or_default(),
                };
                files += usize::from(!inside.is_empty());
                for bytes in [place.as_bytes(), inside.as_slice()] {
                    all.extend(
                        self.in_bytes(bytes)
                            .into_iter()
                            .map(|what| FoundSecret { what, place: place.clone() }),
                    );
                }
            }
        }
        assert!(files > 0, "{} is empty", folder.display());
        all
    }

    /// The secrets in all memory that a process can write to.
    pub fn in_memory(&self, name: &str, pid: u32) -> BTreeSet<FoundSecret> {
        let folder = Path::new("/proc").join(pid.to_string());
        let (maps, memory) =
            (std::fs::read_to_string(folder.join("maps")).unwrap(), File::open(folder.join("mem")).unwrap());
        let (mut all, mut read) = (BTreeSet::new(), 0);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (from, to) = words.next().unwrap().split_once('-').unwrap();
            let [from, to] = [from, to].map(|end| u64::from_str_radix(end, 16).unwrap());
            if !words.next().unwrap().starts_with("rw") {
                continue;
            }
            let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
            // Memory that the kernel keeps for itself cannot be read.
            if memory.read_exact_at(&mut bytes, from).is_ok() {
                read += bytes.len();
                let place = format!("the memory of {name}: {line}");
                all.extend(
                    self.in_bytes(&bytes).into_iter().map(|what| FoundSecret { what, place: place.clone() }),
                );
            }
        }
        assert!(read > 100_000, "{maps}");
        all
    }
}

/// By its name, as the kernel gives it.
fn is_core(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name == "core"
        || name.strip_prefix("core.").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn what_is_planted_is_found() {
    const KEY_FILE: &str = include_str!("../../../../../seal/tests/backup-key.json");
    let words: Vec<String> =
        "abacus t-shirt zoology yoyo crushed felt-tip manual onyx drop-down unhappy yelp"
            .split(' ')
            .map(str::to_owned)
            .collect();
    let mut secrets = Secrets::default();
    secrets.words(&words);
    secrets.key(KEY_FILE);
    secrets.text("password", "a canary");
    let folder = tempfile::tempdir().unwrap();
    let plant = |text: &[u8]| {
        std::fs::write(folder.path().join("agent.db"), [b"\0\0".as_slice(), text, b"\n"].concat())
    };
    let file: Value = serde_json::from_str(KEY_FILE).unwrap();
    let raw = base64::engine::general_purpose::STANDARD.decode(file["data"].as_str().unwrap()).unwrap();
    let hex: String = raw.iter().map(|byte| format!("{byte:02X}")).collect();
    for (what, form) in [
        ("words", words.join(" ").into_bytes()),
        ("words", words.join("\n").to_uppercase().into_bytes()),
        ("words", words[8..].join("-").into_bytes()),
        ("words", b"  7.  manual".to_vec()),
        ("key", KEY_FILE.as_bytes().to_vec()),
        ("key", raw.clone()),
        ("key", raw[16..].to_vec()),
        ("key", hex.clone().into_bytes()),
        ("key", hex[32..].to_lowercase().into_bytes()),
        ("password", b"it is a canary.".to_vec()),
    ] {
        plant(&form).unwrap();
        let found: Vec<FoundSecret> = secrets.in_folder(folder.path()).into_iter().collect();
        let [FoundSecret { what: seen, place }] = found.as_slice() else { panic!("{what}: {found:?}") };
        assert!(*seen == what && place.ends_with("agent.db"), "{found:?}");
    }
    for nothing in
        [words[..2].join(" ").into_bytes(), raw[..15].to_vec(), b"zoology abacus t-shirt yoyo".to_vec()]
    {
        plant(&nothing).unwrap();
        assert_eq!(secrets.in_folder(folder.path()), BTreeSet::new());
    }
}
