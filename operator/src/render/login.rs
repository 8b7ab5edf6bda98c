//! Text of the login.

use holdfast_protocol::operator::{Role, WhoAmI};

use super::table::list;

pub fn whoami(url: &str, who: &WhoAmI) -> String {
    let may = match who.role {
        Role::Viewer => "viewer: looks",
        Role::Operator => "operator: looks, invites, approves, puts desired documents",
        Role::Admin => "admin: all that operators may, and makes and revokes them",
    };
    list(&[
        ("Operator", who.name.to_string()),
        ("Role", may.to_owned()),
        ("Hub", format!("{url}, hubd {}", who.hub_version)),
    ])
}
