//! Text of the login.

use holdfast_protocol::operator::{Proof, Role, WhoAmI};

use super::table::list;

pub fn whoami(url: &str, who: &WhoAmI) -> String {
    let may = match who.role {
        Role::Customer => "customer: looks at what is theirs, and objects to jobs",
        Role::Viewer => "viewer: looks",
        Role::Operator => "operator: looks, invites, approves, puts desired documents",
        Role::Admin => "admin: all that operators may, and makes and revokes them",
    };
    let holder = match who.proof {
        Proof::PersonToken | Proof::Session => "Operator",
        Proof::MachineToken => "Machine",
    };
    list(&[
        (holder, who.name.to_string()),
        ("Role", may.to_owned()),
        ("Scope", who.scope.to_string()),
        ("Hub", format!("{url}, hubd {}", who.hub_version)),
    ])
}
