//! The page of all conditions (`docs/conditions.md`), from their table.

use std::fmt::Write as _;

use holdfast_protocol::condition::{ConditionCode, ConditionSpec, DataRisk, Inhibits};

pub const PAGE: &str = "docs/conditions.md";

const HEAD: &str = "# Conditions and alerts

What can be wrong, by its code. An agent reports the conditions of its host and guests, and the hub adds silence and what only it can see. A condition that lasts longer than its grace fires: those who are named in `hub.toml` hear of it once, again while it lasts, and once when it is over. Conditions of one host and one cause come in one message. While a condition that mutes others lasts, they are kept and not sent. What puts data at risk is sent in quiet hours too.

`HUB_DATABASE_FAILING` is found by a check once a day. A hub that cannot write to its database cannot raise an alert; `[watcher]` in `hub.toml` is for that. `HUB_BACKUP_OLD` is found where `[backup]` in `hub.toml` names the place of its backups. Conditions of disks need smartmontools on the host. `TOKEN_EXPIRING` is found for tokens of operators; for those of Proxmox there is `PROXMOX_TOKEN_OLD`.

This page is written by `cargo xtask schemas` from the one table of conditions.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut causes: Vec<_> = ConditionCode::table().map(|spec| spec.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    for cause in causes {
        // Writing into a string cannot fail.
        let _infallible = write!(
            page,
            "\n## {}\n\n| code | urgency | about | grace | data | meaning | what to do |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            cause.as_str().replace('_', " ")
        );
        for spec in ConditionCode::table().filter(|spec| spec.cause == cause) {
            let _infallible = writeln!(page, "{}", row(&spec));
        }
    }
    page
}

fn row(spec: &ConditionSpec) -> String {
    let subjects: Vec<String> = spec.subjects.iter().map(|kind| kind.as_str().replace('_', " ")).collect();
    let risk = match spec.risk {
        DataRisk::Safe => "safe",
        DataRisk::Endangered => "at risk",
    };
    let mutes = match spec.inhibits {
        Inhibits::Nothing => String::new(),
        Inhibits::Host => " It mutes all else of its host but tampering.".to_owned(),
        Inhibits::Causes(causes) => {
            let names: Vec<&str> = causes.iter().map(|cause| cause.as_str()).collect();
            format!(" It mutes {} of its host.", names.join(", "))
        }
    };
    format!(
        "| `{}` | {} | {} | {} | {risk} | {}{mutes} | {} |",
        spec.code,
        spec.severity,
        subjects.join(", "),
        grace(spec.grace_s),
        spec.meaning,
        spec.remedy
    )
}

fn grace(seconds: u32) -> String {
    match seconds {
        0 => "none".to_owned(),
        hours if hours % 3_600 == 0 => format!("{} h", hours / 3_600),
        minutes => format!("{} min", minutes.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row() {
        let page = page();
        for code in ConditionCode::ALL {
            assert_eq!(page.matches(&format!("\n| `{code}` |")).count(), 1, "{code}");
        }
        assert!(page.contains("It mutes guest, protection, storage, use of its host."));
    }
}
