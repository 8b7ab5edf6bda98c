//! What each call of a person or a machine needs.
//!
//! In: a role, how far a scope reaches and where the object lies. Out: one [`Verdict`]. The hub decides by it before any
//! handler runs, and `docs/authorization.md` is written from it. Deliberately absent: how an object is found.

use crate::access::AccessScope;
use crate::operator::Role;

/// What a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// The hub itself, and what belongs to no host: [`super::hub_wide`] says why of each.
    Hub,
    /// The caller alone.
    Caller,
    /// A list, which the store narrows to the scope.
    List,
    /// Something new, which must lie within the caller's own role and scope.
    New,
    /// A host by its path.
    Host,
    /// A guest by its path.
    Guest,
    /// An alert by its path.
    Alert,
    /// A signed job by its id alone.
    Job,
    /// A customer by its path.
    Customer,
    /// What is written about a customer, which holds for all its guests on all hosts.
    CustomerEntry,
    /// The list of customers, which no host has.
    Customers,
    /// A person by name.
    Person,
    /// A machine token by name.
    Token,
    /// Signed releases, which name no host.
    Releases,
    /// A rollout by its path, with the hosts of the scope.
    Rollout,
    /// A silence by its path, which names a host or a customer.
    Silence,
}

impl Object {
    /// As the page and refusals name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Caller => "caller",
            Self::List => "list",
            Self::New => "new",
            Self::Host => "host",
            Self::Guest => "guest",
            Self::Alert => "alert",
            Self::Job => "job",
            Self::Customer | Self::CustomerEntry => "customer",
            Self::Customers => "customers",
            Self::Person => "operator",
            Self::Token => "token",
            Self::Releases => "releases",
            Self::Rollout => "rollout",
            Self::Silence => "silence",
        }
    }
}

/// Whether people with the role `customer` may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customers {
    /// Never.
    Refused,
    /// For what is theirs.
    Own,
}

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The least role of the provider's own people.
    pub least: Role,
    /// Whether customers may call.
    pub customers: Customers,
    /// What it touches.
    pub object: Object,
}

/// How far a scope reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// To all.
    Everything,
    /// To hosts with some labels.
    Hosts,
    /// To one customer.
    Customer,
}

impl From<&AccessScope> for Reach {
    fn from(scope: &AccessScope) -> Self {
        match scope {
            AccessScope::Everything {} => Self::Everything,
            AccessScope::Hosts { .. } => Self::Hosts,
            AccessScope::Customer { .. } => Self::Customer,
        }
    }
}

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Within the scope.
    Inside,
    /// Outside of it, or there is none.
    Outside,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is served.
    Allowed,
    /// It is served, for what is in the scope.
    Narrowed,
    /// It is refused with 403, whether the object exists or not.
    Forbidden,
    /// It is refused with 404, as if the object did not exist.
    Hidden,
}

impl Access {
    /// A call for the provider's own people.
    #[must_use]
    pub const fn staff(least: Role, object: Object) -> Self {
        Self { least, customers: Customers::Refused, object }
    }

    /// A call for customers too.
    #[must_use]
    pub const fn own(least: Role, object: Object) -> Self {
        Self { least, customers: Customers::Own, object }
    }

    /// What a call of this path needs that says nothing else: a host or a guest by its path, or the hub.
    #[must_use]
    pub const fn of(path: &str, least: Role) -> Self {
        let path = path.as_bytes();
        let object = if contains(path, b"/{guest}") {
            Object::Guest
        } else if starts(path, b"/v1/hosts/{host}") {
            Object::Host
        } else {
            Object::Hub
        };
        Self::staff(least, object)
    }

    /// Whether the role alone suffices.
    #[must_use]
    pub fn suffices(&self, role: Role) -> bool {
        match (role, self.customers) {
            (Role::Customer, Customers::Own) => true,
            (Role::Customer, Customers::Refused) => false,
            (Role::Viewer | Role::Operator | Role::Admin, _) => role >= self.least,
        }
    }

    /// Decides a call.
    #[must_use]
    pub fn verdict(&self, role: Role, reach: Reach, place: Place) -> Verdict {
        if !self.suffices(role) {
            return Verdict::Forbidden;
        }
        let by_place = match place {
            Place::Inside => Verdict::Allowed,
            Place::Outside => Verdict::Hidden,
        };
        match (self.object, reach) {
            (Object::Caller, _) => Verdict::Allowed,
            // A token is its maker's and a person may be above the caller, even where the scope is everything.
            (Object::Person | Object::Token, _) => by_place,
            (_, Reach::Everything) => Verdict::Allowed,
            (Object::List | Object::New | Object::Customers, _) => Verdict::Narrowed,
            (Object::Hub, Reach::Hosts | Reach::Customer) => Verdict::Forbidden,
            // A customer has guests on other hosts.
            (Object::CustomerEntry, Reach::Hosts) => Verdict::Forbidden,
            // Hosts run releases, and guests do not.
            (Object::Releases, Reach::Hosts) => Verdict::Allowed,
            (Object::Releases, Reach::Customer) => Verdict::Forbidden,
            // A host has guests of others, and a rollout is of hosts.
            (Object::Host | Object::Rollout, Reach::Customer) => Verdict::Hidden,
            (Object::Host | Object::Rollout, Reach::Hosts)
            | (
                Object::Guest | Object::Alert | Object::Job | Object::Silence | Object::Customer,
                Reach::Hosts | Reach::Customer,
            )
            | (Object::CustomerEntry, Reach::Customer) => by_place,
        }
    }
}

const fn starts(text: &[u8], prefix: &[u8]) -> bool {
    match (text, prefix) {
        (_, []) => true,
        ([one, text @ ..], [other, prefix @ ..]) => *one == *other && starts(text, prefix),
        ([], [_, ..]) => false,
    }
}

const fn contains(text: &[u8], part: &[u8]) -> bool {
    match text {
        _ if starts(text, part) => true,
        [_, rest @ ..] => contains(rest, part),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Method;
    use crate::hub::calls;
    use crate::hub::calls::Caller;

    #[test]
    fn a_path_says_what_is_touched() {
        let object = |path| Access::of(path, Role::Viewer).object;
        assert_eq!(object("/v1/hosts/{host}"), Object::Host);
        assert_eq!(object("/v1/hosts/{host}/jobs/{job}"), Object::Host);
        assert_eq!(object("/v1/hosts/{host}/guests/{guest}/audit"), Object::Guest);
        assert_eq!(object("/v1/hosts"), Object::Hub);
        assert_eq!(object("/v1/releases/{version}"), Object::Hub);
    }

    /// What changes something needs more than a viewer. These do not, and each has its reason.
    const BY_VIEWERS: [&str; 6] = [
        // Asks what would happen.
        "explainAlert",
        // A customer's right, which the provider's people may use in their place.
        "objectToJob",
        // Tokens are at most what their makers are.
        "createToken",
        "rotateToken",
        "revokeToken",
        // One's own session.
        "endSession",
    ];

    #[test]
    fn what_changes_needs_an_operator_and_a_path_its_object() {
        for call in calls() {
            let Caller::Operator(access) = call.caller else { continue };
            let (name, path) = (call.name, call.path);
            assert_ne!(access.least, Role::Customer, "{name}: customers are said apart");
            if call.method != Method::Get && !BY_VIEWERS.contains(&name) {
                assert!(access.least >= Role::Operator, "{name}");
            }
            let wants = |part: &str, object: Object| {
                let is_so = match access.object {
                    Object::CustomerEntry => object == Object::Customer && access.least >= Role::Operator,
                    found => found == object || (name == "changeHostLabels" && object == Object::Host),
                };
                assert!(!path.contains(part) || is_so, "{name} touches {object:?} by its path");
            };
            if path.contains("{guest}") {
                wants("{guest}", Object::Guest);
            } else {
                wants("/v1/hosts/{host}", Object::Host);
            }
            wants("/v1/customers/{customer}", Object::Customer);
            wants("/v1/operators/{name}", Object::Person);
            wants("/v1/tokens/{name}", Object::Token);
            wants("/v1/alerts/{id}", Object::Alert);
            wants("/v1/silences/{id}", Object::Silence);
        }
    }

    #[test]
    fn a_scope_only_narrows() {
        for call in calls() {
            let Caller::Operator(access) = call.caller else { continue };
            for role in Role::ALL {
                for reach in [Reach::Everything, Reach::Hosts, Reach::Customer] {
                    for place in [Place::Inside, Place::Outside] {
                        let served = matches!(
                            access.verdict(role, reach, place),
                            Verdict::Allowed | Verdict::Narrowed
                        );
                        assert!(!served || access.suffices(role), "{}", call.name);
                        let widest = access.verdict(role, Reach::Everything, place);
                        assert!(!served || widest == Verdict::Allowed, "{} {role:?} {reach:?}", call.name);
                    }
                }
            }
        }
    }
}
