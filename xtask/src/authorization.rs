//! The page of who may call what (`docs/authorization.md`).
//!
//! In: the calls of the hub with what each needs, from their tables. Out: one row for each call and one column for each role and scope. The
//! hub's tests read the page and make each of its requests over HTTP.

use std::fmt::Write as _;

use holdfast_protocol::hub::access::{Access, Customers, Object, Place, Reach, Verdict};
use holdfast_protocol::hub::calls;
use holdfast_protocol::hub::calls::Caller;
use holdfast_protocol::hub::hub_wide::HUB_WIDE;
use holdfast_protocol::operator::Role;

pub const PAGE: &str = "docs/authorization.md";

const HEAD: &str = "\
# Who may call what

Written by `cargo xtask schemas` from the tables of calls (`protocol/src/hub`). The hub decides by the same tables before \
any handler runs, and refuses a route that is in none of them. A test of the hub reads this page and makes every request \
of it over HTTP. [People and tokens](people-and-tokens.md) says what roles and scopes are.

| cell | meaning |
| --- | --- |
| yes | it is served |
| part | it is served for what lies in the scope: a list is narrowed, something new must not exceed it |
| 403 | it is refused, whether the object exists or not |
| 404 | it is refused as if the object did not exist |

The columns are roles with scopes: `V` viewer, `O` operator, `A` admin, `C` customer; `all` everything, `h+` and `h-` a \
label selector that has the object's host and one that has not, `c+` and `c-` the customer whose object it is and another \
one. Of a person or a token that a call names, `+` stands below the caller and `-` does not, under every scope.
";

/// The columns of the page, in order.
const COLUMNS: [(&str, Role, Reach, Place); 17] = [
    ("V all", Role::Viewer, Reach::Everything, Place::Inside),
    ("V h+", Role::Viewer, Reach::Hosts, Place::Inside),
    ("V h-", Role::Viewer, Reach::Hosts, Place::Outside),
    ("V c+", Role::Viewer, Reach::Customer, Place::Inside),
    ("V c-", Role::Viewer, Reach::Customer, Place::Outside),
    ("O all", Role::Operator, Reach::Everything, Place::Inside),
    ("O h+", Role::Operator, Reach::Hosts, Place::Inside),
    ("O h-", Role::Operator, Reach::Hosts, Place::Outside),
    ("O c+", Role::Operator, Reach::Customer, Place::Inside),
    ("O c-", Role::Operator, Reach::Customer, Place::Outside),
    ("A all", Role::Admin, Reach::Everything, Place::Inside),
    ("A h+", Role::Admin, Reach::Hosts, Place::Inside),
    ("A h-", Role::Admin, Reach::Hosts, Place::Outside),
    ("A c+", Role::Admin, Reach::Customer, Place::Inside),
    ("A c-", Role::Admin, Reach::Customer, Place::Outside),
    ("C c+", Role::Customer, Reach::Customer, Place::Inside),
    ("C c-", Role::Customer, Reach::Customer, Place::Outside),
];

/// The page as it should be.
///
/// # Errors
/// Never: a string takes all that is written to it.
pub fn page() -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
    let lines = "| --- ".repeat(COLUMNS.len() + 3);
    writeln!(
        page,
        "\n## Calls of people and machines\n\n| call | needs | touches | {} |\n{lines}|",
        names.join(" | ")
    )?;
    let mut all: Vec<_> = calls()
        .filter_map(|call| match call.caller {
            Caller::Operator(access) => Some((call, access)),
            Caller::Anyone | Caller::Agent | Caller::Session => None,
        })
        .collect();
    all.sort_by_key(|(call, _)| (call.path, call.method));
    for (call, access) in &all {
        let cells: Vec<&str> = COLUMNS
            .iter()
            .map(|(_, role, reach, place)| cell(access.verdict(*role, *reach, *place)))
            .collect();
        let (verb, path, needs) = (call.method.verb(), call.path, needs(*access));
        let object = access.object.as_str();
        writeln!(page, "| `{verb} {path}` | {needs} | {object} | {} |", cells.join(" | "))?;
    }
    page +=
        "\n## What only the scope everything reaches\n\n| calls that touch the hub | why |\n| --- | --- |\n";
    for row in HUB_WIDE {
        writeln!(page, "| `{}` | {} |", row.paths, row.why)?;
    }
    page += "\n## Other calls\n\n| call | needs |\n| --- | --- |\n";
    let mut others: Vec<_> = calls()
        .filter_map(|call| match call.caller {
            Caller::Anyone => Some((call, "nothing")),
            Caller::Agent => Some((call, "the certificate of a host, for that host alone")),
            Caller::Session => Some((call, "the session of a person, for what is theirs alone")),
            Caller::Operator(_) => None,
        })
        .collect();
    others.sort_by_key(|(call, _)| (call.path, call.method));
    for (call, needs) in others {
        writeln!(page, "| `{} {}` | {needs} |", call.method.verb(), call.path)?;
    }
    Ok(page)
}

fn needs(access: Access) -> String {
    let least = access.least.as_str();
    match (access.customers, access.object) {
        (Customers::Own, Object::Caller) => format!("{least}, customer"),
        (Customers::Own, _) => format!("{least}, or customer for what is theirs"),
        (Customers::Refused, _) => least.to_owned(),
    }
}

const fn cell(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "yes",
        Verdict::Narrowed => "part",
        Verdict::Forbidden => "403",
        Verdict::Hidden => "404",
    }
}
