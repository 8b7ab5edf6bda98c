//! The secrets of a stage, and a search for them in logs.
//!
//! In: what the stage handed out, and the files in which programs keep secrets. Out: every log with one of them, by
//! what it is. The simulator's own log is left out: its first line hands the tokens of Proxmox to the stage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Stage;

/// Shorter texts are found by chance.
const SECRET_BYTES_MIN: usize = 16;

/// No file with a secret is longer.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The fields of our JSON that hold a secret.
const FIELDS: &[&str] = &["claim", "password", "proof", "secret", "token"];

/// How invites and tokens of operators begin.
const PREFIXES: &[&str] = &["hf1_", "hfo_"];

/// The fewest kinds of secrets in a stage whose programs ran; with fewer the search would prove nothing.
const KINDS_MIN: usize = 4;

/// Secrets by their text, with what they are.
#[derive(Clone, Debug, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Adds a text. Short ones are left out.
    pub fn add(&mut self, what: &str, text: &str) {
        let text = text.trim();
        if text.len() >= SECRET_BYTES_MIN {
            self.0.insert(text.to_owned(), what.to_owned());
        }
    }

    /// Adds the secrets of a JSON value, by the names of its fields.
    pub fn add_json(&mut self, what: &str, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add_json(what, item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if text.contains("PRIVATE KEY") => self.add_pem(what, text),
                        Some(text)
                            if FIELDS.contains(&name.as_str())
                                || PREFIXES.iter().any(|prefix| text.starts_with(prefix)) =>
                        {
                            self.add(&format!("{what}: {name}"), text);
                        }
                        _ => self.add_json(what, value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Adds the lines of the private keys of a PEM file.
    fn add_pem(&mut self, what: &str, text: &str) {
        let mut inside = false;
        for line in text.lines() {
            inside = if line.starts_with("-----") {
                line.contains("BEGIN") && line.contains("PRIVATE")
            } else {
                inside
            };
            if inside && !line.starts_with("-----") {
                self.add(&format!("{what}: a private key"), line);
            }
        }
    }

    /// Adds the secrets of a file, by its form and name.
    fn add_file(&mut self, what: &str, path: &Path, bytes: &[u8]) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return if name.ends_with(".key") {
                self.add(what, &hex(bytes))
            };
        };
        if let Ok(value) = serde_json::from_str(text) {
            return self.add_json(what, &value);
        }
        self.add_pem(what, text);
        for word in text.split_whitespace().filter(|word| word.starts_with("AGE-SECRET-KEY-")) {
            self.add(what, word);
        }
        let in_secrets = path.parent().is_some_and(|folder| folder.ends_with("secrets"));
        if in_secrets || name.ends_with("token") || name.ends_with("secret") {
            text.lines().for_each(|line| self.add(what, line.rsplit('=').next().unwrap_or(line)));
        }
        if name.ends_with(".toml") {
            let secret = |name: &str| ["password", "secret", "token"].contains(&name.trim());
            for (_, value) in
                text.lines().filter_map(|line| line.split_once('=')).filter(|(name, _)| secret(name))
            {
                self.add(what, value.trim().trim_matches('"'));
            }
        }
    }

    /// Which of them a text holds, by what they are.
    #[must_use]
    pub fn within(&self, text: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(secret, _)| text.contains(secret.as_str()))
            .map(|(_, what)| what.as_str())
            .collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files below a folder. Links are not followed; what goes away meanwhile is left out.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

impl Stage {
    /// Says that a text is a secret of this stage.
    pub fn keep_secret(&self, what: &str, text: &str) {
        self.secrets().add(what, text);
    }

    pub(super) fn secrets(&self) -> std::sync::MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Every secret that was handed out, and those that programs and guests keep in files now.
    #[must_use]
    pub fn all_secrets(&self) -> Secrets {
        let mut all = self.secrets().clone();
        for (id, secret) in self.proxmox.iter().flat_map(|proxmox| &proxmox.tokens) {
            all.add(&format!("the token {id} of Proxmox"), secret);
        }
        let of_guests = |path: &PathBuf| path.ends_with("claim.json") || path.ends_with("bootstrap.json");
        let own = ["hub", "agent", "operator"].into_iter().flat_map(|name| files(&self.part(name)));
        for path in own.chain(files(&self.part("sim")).into_iter().filter(of_guests)) {
            let small = std::fs::metadata(&path).is_ok_and(|file| file.len() <= FILE_BYTES_MAX);
            if let (true, Ok(bytes)) = (small, std::fs::read(&path)) {
                let what = path.strip_prefix(self.folder()).unwrap_or(&path).display().to_string();
                all.add_file(&what, &path, &bytes);
            }
        }
        all
    }

    /// The logs of all our programs: those of the stage, and those of the guests.
    #[must_use]
    pub fn program_logs(&self) -> Vec<PathBuf> {
        let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "log");
        let stem = |path: &Path| {
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let own = files(&self.part("log")).into_iter().filter(|path| !stem(path).starts_with("pve-sim"));
        let of_guests = files(&self.part("sim"))
            .into_iter()
            .filter(|path| stem(path).bytes().all(|byte| byte.is_ascii_digit()));
        own.chain(of_guests).filter(is_log).collect()
    }

    /// Searches all logs of our programs for every secret of the stage.
    ///
    /// # Errors
    /// When a log holds one, or there are too few secrets for the search to prove something.
    pub fn no_secret_was_logged(&self) -> Result<()> {
        let secrets = self.all_secrets();
        if self.hub.is_some() && secrets.0.len() < KINDS_MIN {
            bail!("only {} secrets were found to search for: {:?}", secrets.0.len(), secrets.0.values());
        }
        for log in self.program_logs() {
            let bytes = std::fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
            let found = secrets.within(&String::from_utf8_lossy(&bytes)).join(", ");
            if !found.is_empty() {
                bail!("{} holds secrets: {found}", log.display());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN CERTIFICATE-----\nMIIBCERTIFICATEISNOSECRETATALL==\n-----END CERTIFICATE-----\n\
                       -----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\nAwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_planted_secret_is_found_in_each_form() {
        let json = serde_json::json!({ "hub": "https://hub.example:8440", "key_pem": KEY, "n": [{ "token": "hfo_0123456789abcdef" }] });
        let cases: [(&str, Vec<u8>, &str); 8] = [
            (
                "agent/state/identity/identity.json",
                json.to_string().into_bytes(),
                "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49",
            ),
            ("operator/login.json", json.to_string().into_bytes(), "hfo_0123456789abcdef"),
            ("hub/ca.key", KEY.as_bytes().to_vec(), "AwEHBG0wawIBAQQg"),
            ("hub/seed.key", vec![0xf3; 32], &"f3".repeat(32)),
            ("hub/admin-token", b"hfo_fedcba9876543210\n".to_vec(), "hfo_fedcba9876543210"),
            (
                "agent/state/host.agekey",
                b"# made\nAGE-SECRET-KEY-1QQQQQQQQ\n".to_vec(),
                "AGE-SECRET-KEY-1QQQQQQQQ",
            ),
            (
                "agent/state/secrets/proxmox-run",
                b"a@pve!run=8f2d1c0b-7a55-4c1d\n".to_vec(),
                "8f2d1c0b-7a55-4c1d",
            ),
            (
                "hub/hub.toml",
                b"[mail]\npassword = \"correct horse battery\"\n".to_vec(),
                "correct horse battery",
            ),
        ];
        for (path, bytes, planted) in cases {
            let mut secrets = Secrets::default();
            secrets.add_file(path, Path::new(path), &bytes);
            let log = format!("{{\"message\":\"at {planted}.\"}}\n");
            assert_eq!(secrets.within(&log).len(), 1, "{path}: {secrets:?}");
            for harmless in ["https://hub.example:8440", "MIIBCERTIFICATEISNOSECRETATALL==", "a@pve!run"] {
                assert_eq!(secrets.within(harmless), Vec::<&str>::new(), "{path}");
            }
        }
    }

    #[test]
    fn what_a_program_prints_as_json_is_searched_by_its_fields() {
        let mut secrets = Secrets::default();
        secrets.add_json(
            "holdfast host invite",
            &serde_json::json!({ "id": "0123456789abcdef0", "code": "hf1_0123456789abcdef" }),
        );
        assert_eq!(secrets.within("redeemed hf1_0123456789abcdef"), ["holdfast host invite: code"]);
        assert!(secrets.within("0123456789abcdef0").is_empty());
    }
}
