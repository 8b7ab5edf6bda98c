//! Files with signed jobs: checked on reading, replaced atomically.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use holdfast_protocol::break_glass::PersonKey;
use holdfast_protocol::job::envelope::{CONSENTS_MAX, SIGNATURES_MAX, SIGNED_BYTES_MAX, SignedJobError};
use holdfast_protocol::job::{Draft, Payload, PayloadError, SignedJob};
use holdfast_trust::OperatorKey;
use holdfast_trust::signature::{Namespace, SignatureError, check};

/// Why a file is no signed job, or is not written.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    /// The system refused.
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Not a signed job.
    #[error("{from} is not a signed job")]
    Envelope {
        /// What was read.
        from: String,
        #[source]
        source: SignedJobError,
    },
    /// Its payload cannot be read.
    #[error("the job in {from} cannot be read by this version of holdfast")]
    Payload {
        /// What was read.
        from: String,
        #[source]
        source: PayloadError,
    },
    /// Not a draft.
    #[error("{from} is not a job draft")]
    Draft {
        /// What was read.
        from: String,
        #[source]
        source: PayloadError,
    },
    /// A signature in it is none.
    #[error("signature {number} in {from} is invalid: sign again")]
    Signature {
        /// What was read.
        from: String,
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    /// A consent in it is none.
    #[error("consent {number} in {from} is invalid: let the customer sign the payload of this job")]
    Consent {
        /// What was read.
        from: String,
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    #[error("a job carries at most {CONSENTS_MAX} consents")]
    FullOfConsents,
    #[error("{from} is not a public key that may be let in: {why}")]
    PersonKey { from: String, why: &'static str },
    /// The same key again.
    #[error("{key} has signed this job already: another operator must sign with another key")]
    Twice { key: String },
    #[error("a job carries at most {SIGNATURES_MAX} signatures")]
    Full,
    /// Cannot happen for strings.
    #[error("the signed job cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// Reads a draft that a host wrote to be signed.
pub fn draft(path: &Path) -> Result<Draft, JobFileError> {
    let failed = |source| JobFileError::Io { verb: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(SIGNED_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Draft::parse(&bytes).map_err(|source| JobFileError::Draft { from: path.display().to_string(), source })
}

/// Reads the public key of a person, without its comment.
pub fn person_key(path: &Path) -> Result<PersonKey, JobFileError> {
    const BYTES_MAX: u64 = 4 * 1024;
    let failed = |source| JobFileError::Io { verb: "read", path: path.to_owned(), source };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let mut words = text.split_whitespace();
    let key = format!("{} {}", words.next().unwrap_or_default(), words.next().unwrap_or_default());
    PersonKey::try_from(key).map_err(|why| JobFileError::PersonKey { from: path.display().to_string(), why })
}

/// Reads a signature that a customer sent.
pub fn consent(path: &Path) -> Result<String, JobFileError> {
    const BYTES_MAX: u64 = 4 * 1024;
    let failed = |source| JobFileError::Io { verb: "read", path: path.to_owned(), source };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// A signed job that was read, with what is in it.
pub struct JobFile<Content = Payload> {
    /// As it travels.
    pub job: SignedJob,
    /// What is ordered.
    pub payload: Content,
    /// By which keys. Whose they are, and whether they may, is for the host to say.
    pub keys: Vec<OperatorKey>,
}

/// How the signed bytes are read.
type Read<Content> = fn(&[u8]) -> Result<Content, PayloadError>;

impl JobFile {
    /// Reads a text; every signature in it must hold.
    pub fn parse(text: &[u8], from: &str) -> Result<Self, JobFileError> {
        Self::parse_as(text, from, Payload::parse)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<(Self, String), JobFileError> {
        Self::read_as(path, Payload::parse)
    }
}

impl<Content> JobFile<Content> {
    /// Reads a text of this content; every signature in it must hold.
    fn parse_as(text: &[u8], from: &str, read: Read<Content>) -> Result<Self, JobFileError> {
        let from = || from.to_owned();
        let job = SignedJob::parse(text).map_err(|source| JobFileError::Envelope { from: from(), source })?;
        let mut keys = Vec::new();
        for (number, armoured) in (1..).zip(&job.signatures) {
            let key = check(&job.payload, armoured, Namespace::Job)
                .map_err(|source| JobFileError::Signature { from: from(), number, source })?;
            keys.push(key);
        }
        for (number, armoured) in (1..).zip(&job.consents) {
            check(&job.payload, armoured, Namespace::Consent).map_err(|source| JobFileError::Consent {
                from: from(),
                number,
                source,
            })?;
        }
        let payload = read(&job.payload).map_err(|source| JobFileError::Payload { from: from(), source })?;
        Ok(Self { job, payload, keys })
    }

    /// Reads a file of this content.
    pub fn read_as(path: &Path, read: Read<Content>) -> Result<(Self, String), JobFileError> {
        let failed = |source| JobFileError::Io { verb: "read", path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = fs::File::open(path).map_err(failed)?;
        // One byte more than is accepted, so that what is too long is seen to be.
        file.take(SIGNED_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        let blob = Self::parse_as(&bytes, &path.display().to_string(), read)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        Ok((blob, text))
    }

    /// Adds a signature over the same bytes.
    pub fn add(&mut self, armoured: String, key: OperatorKey) -> Result<(), JobFileError> {
        if self.keys.contains(&key) {
            return Err(JobFileError::Twice { key: key.fingerprint() });
        }
        if self.job.signatures.len() >= SIGNATURES_MAX {
            return Err(JobFileError::Full);
        }
        self.job.signatures.push(armoured);
        self.keys.push(key);
        Ok(())
    }

    /// Adds a customer's consent to the same bytes. Which customer it is, is for the host to say.
    pub fn add_consent(&mut self, armoured: String, from: &Path) -> Result<OperatorKey, JobFileError> {
        let number = self.job.consents.len().saturating_add(1);
        let from = || from.display().to_string();
        let key = check(&self.job.payload, &armoured, Namespace::Consent)
            .map_err(|source| JobFileError::Consent { from: from(), number, source })?;
        if number > CONSENTS_MAX {
            return Err(JobFileError::FullOfConsents);
        }
        if !self.job.consents.contains(&armoured) {
            self.job.consents.push(armoured);
        }
        Ok(key)
    }

    /// As it travels.
    pub fn text(&self) -> Result<String, JobFileError> {
        self.job.to_json().map_err(JobFileError::Unwritable)
    }
}

/// Whether the file may exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It may not.
    Never,
    /// The one that was read may.
    SameFile,
}

/// Writes a text: whole or not at all.
pub fn write(path: &Path, text: &str, over: Overwrite) -> Result<(), JobFileError> {
    let failed = |verb, at: &Path| {
        let path = at.to_owned();
        move |source| JobFileError::Io { verb, path, source }
    };
    let put = |at: &Path| {
        let mut file = fs::File::create_new(at).map_err(failed("make", at))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", at))
    };
    match over {
        Overwrite::Never => put(path),
        Overwrite::SameFile => {
            let temporary = path.with_extension(format!("{}.new", std::process::id()));
            put(&temporary)?;
            fs::rename(&temporary, path).map_err(failed("put in place", path))
        }
    }
}
