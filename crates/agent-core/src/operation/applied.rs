//! Fields that a finished operation has applied.

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::{InForce, Running};

use super::{DiskRef, Operation, Reconfigure};
use crate::model::field::{self, Texts};

/// What an operation leaves behind in the records of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedBy {
    /// The guest is new: nothing that was carried out before counts.
    Anew(Texts),
    /// These changed; a guest that ran has each from when on [`field::takes`] says.
    Changed(Texts),
}

impl AppliedBy {
    /// From when on a guest has a field of it.
    #[must_use]
    pub const fn takes(&self, field: GuestField) -> InForce {
        match self {
            Self::Anew(_) => InForce::Now,
            Self::Changed(_) => field::takes(field),
        }
    }

    #[must_use]
    pub const fn texts(&self) -> &Texts {
        match self {
            Self::Anew(texts) | Self::Changed(texts) => texts,
        }
    }
}

impl Operation {
    /// The fields that it carries out; none, where it changes none that is held to the document.
    #[must_use]
    pub fn applied(&self) -> Option<AppliedBy> {
        let one = |field, text: String| Some(AppliedBy::Changed(Texts::from([(field, text)])));
        match self {
            Self::Provision(provision) => {
                let mut texts = field::wanted(&provision.guest);
                texts.insert(GuestField::Run, field::running(Running::Running).to_owned());
                // Its disk is as large as its backup was.
                if provision.lost().is_some() {
                    texts.remove(&GuestField::Rootfs);
                }
                Some(AppliedBy::Anew(texts))
            }
            Self::Reconfigure(change) => Some(AppliedBy::Changed(changed(change))),
            Self::Grow(grow) => match grow.disk {
                DiskRef::Rootfs => one(GuestField::Rootfs, grow.size.to_string()),
                DiskRef::Mount(_) => None,
            },
            Self::Start(_) => one(GuestField::Run, field::running(Running::Running).to_owned()),
            Self::Stop(_) => one(GuestField::Run, field::running(Running::Stopped).to_owned()),
            Self::AttachVolume(_)
            | Self::Snapshot(_)
            | Self::ExpireSnapshot(_)
            | Self::RollBack(_)
            | Self::Backup(_)
            | Self::QuiescedBackup(_)
            | Self::PruneBackup(_)
            | Self::Destroy(_)
            | Self::RestoreCopy(_)
            | Self::RestoreTest(_)
            | Self::ReassignVolume(_)
            | Self::AdoptGuest(_)
            | Self::SwapGuest(_)
            | Self::UpdateController(_) => None,
        }
    }
}

fn changed(change: &Reconfigure) -> Texts {
    let Reconfigure { target: _, cores, memory, swap, name, network, filter: _, resolver, protection: _ } =
        change;
    let named = [
        (GuestField::Cores, cores.map(|cores| cores.get().to_string())),
        (GuestField::Memory, memory.map(|size| size.to_string())),
        (GuestField::Swap, swap.map(|size| size.to_string())),
        (GuestField::Name, name.as_ref().map(ToString::to_string)),
        (GuestField::Resolver, resolver.as_ref().map(field::resolver)),
    ];
    let named = named.into_iter().filter_map(|(field, text)| Some((field, text?)));
    network.iter().flat_map(field::of_place).chain(named).collect()
}
