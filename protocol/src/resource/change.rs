//! A desired document with one part made, replaced or removed.
//!
//! In: a document and the change of one part. Out: the whole next document, which is checked and put as any other; all other
//! parts of it are as they were. Deliberately absent: its generation, which the caller counts on.

use super::part::{DocumentPart, GuestRef, PartContent};
use super::users::{PartUser, users};
use crate::code::ErrorCode;
use crate::desired::{DesiredDocument, DesiredGuest};

/// Why a part is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The document does not have it.
    #[error("the document has no {part}; nothing was changed")]
    Absent {
        /// Which part.
        part: String,
    },
    /// The document has one of that name.
    #[error("the document has a {part} already: change that one with PUT or PATCH, or choose another name")]
    Taken {
        /// Which part.
        part: String,
    },
    /// The content is that of another part.
    #[error(
        "{path} is {given}, and the request is about {wanted}: a part keeps it, so make a new one instead"
    )]
    OtherIdentity {
        /// The path in the content.
        path: &'static str,
        /// What the content says.
        given: String,
        /// What the request is about.
        wanted: String,
    },
    /// Other parts name it.
    #[error("{part} is in use by {}; change these first, nothing was removed", list(users))]
    InUse {
        /// Which part.
        part: String,
        /// What names it.
        users: Vec<PartUser>,
    },
}

/// As many users as a person reads; the details of an error have all.
const SHOWN: usize = 5;

fn list(users: &[PartUser]) -> String {
    let first: Vec<String> = users.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = users.len().saturating_sub(SHOWN);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    first.join(", ") + &rest
}

impl PartError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Absent { .. } => ErrorCode::NotFound,
            Self::Taken { .. } => ErrorCode::NameTaken,
            Self::OtherIdentity { .. } => ErrorCode::Range,
            Self::InUse { .. } => ErrorCode::InUse,
        }
    }

    /// The JSON path of the mistake, where there is one.
    #[must_use]
    pub const fn path(&self) -> Option<&'static str> {
        match self {
            Self::OtherIdentity { path, .. } => Some(path),
            Self::Absent { .. } | Self::Taken { .. } | Self::InUse { .. } => None,
        }
    }
}

fn absent(part: &DocumentPart) -> PartError {
    PartError::Absent { part: part.to_string() }
}

fn guest_mut<'d>(
    document: &'d mut DesiredDocument,
    guest: &GuestRef,
) -> Result<&'d mut DesiredGuest, PartError> {
    let found = document.guests.iter_mut().find(|one| guest.names(one));
    found.ok_or_else(|| absent(&DocumentPart::Guest(guest.clone())))
}

/// The document with a new part. A volume is made within a guest.
///
/// # Errors
/// [`PartError`].
pub fn create(
    document: &DesiredDocument,
    within: Option<&GuestRef>,
    content: PartContent,
) -> Result<(DesiredDocument, DocumentPart), PartError> {
    let mut next = document.clone();
    let taken = |part: &DocumentPart| {
        let taken = PartError::Taken { part: part.to_string() };
        if part.read(document).is_some() { Err(taken) } else { Ok(()) }
    };
    let part = match content {
        PartContent::Guest(guest) => {
            taken(&DocumentPart::Guest(GuestRef::Name(guest.name.clone())))?;
            let part = DocumentPart::Guest(GuestRef::Uid(guest.uid));
            taken(&part)?;
            next.guests.push(*guest);
            part
        }
        PartContent::StorageTarget(target) => {
            let part = DocumentPart::StorageTarget(target.name.clone());
            taken(&part)?;
            next.storage.push(*target);
            part
        }
        PartContent::Policy(policy) => {
            let part = DocumentPart::Policy(policy.name.clone());
            taken(&part)?;
            next.policies.push(*policy);
            part
        }
        PartContent::Volume(volume) => {
            // The caller's path always names the guest; without one there is no such guest.
            let Some(guest) = within else { return Err(PartError::Absent { part: "guest".to_owned() }) };
            let part = DocumentPart::Volume(guest.clone(), volume.name.clone());
            taken(&part)?;
            guest_mut(&mut next, guest)?.volumes.push(volume);
            part
        }
    };
    Ok((next, part))
}

/// The document with another content of a part that it has.
///
/// # Errors
/// [`PartError`].
pub fn replace(
    document: &DesiredDocument,
    part: &DocumentPart,
    content: PartContent,
) -> Result<DesiredDocument, PartError> {
    let mut next = document.clone();
    match (part, content) {
        (DocumentPart::Guest(guest), PartContent::Guest(content)) => {
            let slot = guest_mut(&mut next, guest)?;
            same("uid", slot.uid.to_string(), content.uid.to_string())?;
            *slot = *content;
        }
        (DocumentPart::Volume(guest, name), PartContent::Volume(content)) => {
            let volumes = &mut guest_mut(&mut next, guest)?.volumes;
            let slot = volumes.iter_mut().find(|one| one.name == *name).ok_or_else(|| absent(part))?;
            same("name", name.to_string(), content.name.to_string())?;
            *slot = content;
        }
        (DocumentPart::StorageTarget(name), PartContent::StorageTarget(content)) => {
            let slot = next.storage.iter_mut().find(|one| one.name == *name).ok_or_else(|| absent(part))?;
            same("name", name.to_string(), content.name.to_string())?;
            *slot = *content;
        }
        (DocumentPart::Policy(name), PartContent::Policy(content)) => {
            let slot = next.policies.iter_mut().find(|one| one.name == *name).ok_or_else(|| absent(part))?;
            same("name", name.to_string(), content.name.to_string())?;
            *slot = *content;
        }
        (part, content) => {
            let (wanted, given) = (part.kind().as_str().to_owned(), content.kind().as_str().to_owned());
            return Err(PartError::OtherIdentity { path: ".", given, wanted });
        }
    }
    Ok(next)
}

fn same(path: &'static str, wanted: String, given: String) -> Result<(), PartError> {
    if wanted == given { Ok(()) } else { Err(PartError::OtherIdentity { path, given, wanted }) }
}

/// The document without a part that nothing else in it names.
///
/// # Errors
/// [`PartError`].
pub fn remove(document: &DesiredDocument, part: &DocumentPart) -> Result<DesiredDocument, PartError> {
    if part.read(document).is_none() {
        return Err(absent(part));
    }
    let users = users(part, document);
    if !users.is_empty() {
        return Err(PartError::InUse { part: part.to_string(), users });
    }
    let mut next = document.clone();
    match part {
        DocumentPart::Guest(guest) => next.guests.retain(|one| !guest.names(one)),
        DocumentPart::Volume(guest, name) => {
            guest_mut(&mut next, guest)?.volumes.retain(|one| one.name != *name);
        }
        DocumentPart::StorageTarget(name) => next.storage.retain(|one| one.name != *name),
        DocumentPart::Policy(name) => next.policies.retain(|one| one.name != *name),
    }
    Ok(next)
}
