//! Names to choose from, as a host's document and report have them.

use std::collections::BTreeSet;

use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::report::Sections;
use holdfast_protocol::storage::StorageRole;

use super::Names;

/// Names that are known of a host, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNames {
    policies: Vec<String>,
    primary: Vec<String>,
    bulk: Vec<String>,
    backups: Vec<String>,
    images: Vec<String>,
    customers: Vec<String>,
}

impl KnownNames {
    #[must_use]
    pub fn of(document: &DesiredDocument, sections: &Sections) -> Self {
        let targets = |roles: &[StorageRole]| {
            let of_role = document.storage.iter().filter(|target| roles.contains(&target.role));
            of_role.map(|target| target.name.to_string()).collect()
        };
        let reported =
            sections.host.iter().flat_map(|host| &host.goldens).map(|image| image.version.to_string());
        let used = document.guests.iter().map(|guest| guest.golden.to_string());
        Self {
            policies: document.policies.iter().map(|policy| policy.name.to_string()).collect(),
            primary: targets(&[StorageRole::Primary]),
            bulk: targets(&[StorageRole::BulkData]),
            backups: targets(&[StorageRole::LocalBackup, StorageRole::OffsiteBackup]),
            images: each_once(reported.chain(used)),
            customers: each_once(document.guests.iter().map(|guest| guest.customer.to_string())),
        }
    }

    pub(super) fn list(&self, names: Names) -> Vec<String> {
        match names {
            Names::Policies => self.policies.clone(),
            Names::Primary => self.primary.clone(),
            Names::Volumes => [self.primary.clone(), self.bulk.clone()].concat(),
            Names::Backups => self.backups.clone(),
            Names::Images => self.images.clone(),
            Names::Customers => self.customers.clone(),
        }
    }
}

fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}
