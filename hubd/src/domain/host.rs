//! References to hosts by id or name.

use std::str::FromStr;

use holdfast_protocol::id::{HostId, HostName, IdError};

/// A host, named by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRef {
    /// By its id; revoked ones, too.
    Id(HostId),
    /// By its name; a revoked host has none any more.
    Name(HostName),
}

impl FromStr for HostRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(Self::Id).or_else(|_| text.parse().map(Self::Name))
    }
}

/// Whether requests can refer to a host by this name: a name that reads as an id would be taken for the id.
#[must_use]
pub fn is_usable_name(name: &HostName) -> bool {
    name.as_str().parse::<HostId>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_an_id_and_all_else_a_name() {
        let id = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55";
        assert!(matches!(id.parse(), Ok(HostRef::Id(_))));
        assert!(matches!("box7".parse(), Ok(HostRef::Name(_))));
        assert!("Box 7".parse::<HostRef>().is_err());
        assert!(!is_usable_name(&id.parse().unwrap()) && is_usable_name(&"box7".parse().unwrap()));
    }
}
