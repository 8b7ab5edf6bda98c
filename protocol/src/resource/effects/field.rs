//! The effect of a change to each field of a made guest.

use super::EffectKind;
use crate::resource::diff::FieldChange;

/// The number at the beginning of a value.
fn number(value: Option<&String>) -> Option<u64> {
    value.and_then(|value| value.parse().ok())
}

fn of_disk(change: &FieldChange) -> EffectKind {
    match (number(change.before.as_ref()), number(change.after.as_ref())) {
        (Some(before), Some(after)) if after < before => EffectKind::NotCarriedOut,
        _ => EffectKind::Grow,
    }
}

fn of_volume(change: &FieldChange, field: Option<&str>) -> EffectKind {
    match field {
        Some("size_gib") => of_disk(change),
        Some("kind") => EffectKind::ChangeProtection,
        Some(_) => EffectKind::NotCarriedOut,
        None if change.before.is_none() => EffectKind::AttachVolume,
        None => EffectKind::NotCarriedOut,
    }
}

/// What a change to this field causes. What the table of fields refuses never comes so far.
#[must_use]
pub fn effect_of_field(change: &FieldChange) -> EffectKind {
    let mut parts = change.field.splitn(3, '.');
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        ("run", ..) if change.after.as_deref() == Some("running") => EffectKind::Start,
        ("run", ..) => EffectKind::Stop,
        ("name", ..) => EffectKind::Reconfigure,
        ("size", Some("rootfs_gib"), _) => of_disk(change),
        ("size" | "limits", ..) => EffectKind::Reconfigure,
        ("network", Some("mtu" | "resolver"), _) => EffectKind::AtNextStart,
        ("network", Some("firewall"), _) if change.after.as_deref() == Some("off") => {
            EffectKind::NotCarriedOut
        }
        ("network", ..) => EffectKind::Reconfigure,
        ("policy", ..) => EffectKind::ChangeProtection,
        ("controller", ..) => EffectKind::UpdateController,
        ("maintenance" | "levels" | "backup_before_exchange_h", ..) => EffectKind::Schedule,
        ("volumes", Some(_), field) => of_volume(change, field),
        _ => EffectKind::NotCarriedOut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::field::{FIELDS, Fate};

    fn change(field: &str) -> FieldChange {
        let (before, after) = (Some("4".to_owned()), Some("8".to_owned()));
        FieldChange { field: field.to_owned(), before, after, remark: None }
    }

    /// A new field of a guest has an effect, or the table of fields says that there is none.
    #[test]
    fn every_field_that_is_carried_out_has_an_effect() {
        for (path, fate) in FIELDS {
            // A volume's fields stand under its name.
            let field = match path.strip_prefix("volumes.") {
                Some(rest) => format!("volumes.db.{rest}"),
                None => (*path).to_owned(),
            };
            let effect = effect_of_field(&change(&field));
            match fate {
                Fate::CarriedOut | Fate::OneWay => assert_ne!(effect, EffectKind::NotCarriedOut, "{path}"),
                Fate::Identity | Fate::Refused => assert_eq!(effect, EffectKind::NotCarriedOut, "{path}"),
            }
        }
    }

    #[test]
    fn the_direction_decides() {
        let cases = [
            ("run", "stopped", "running", EffectKind::Start),
            ("run", "running", "stopped", EffectKind::Stop),
            ("size.rootfs_gib", "8", "16", EffectKind::Grow),
            ("size.rootfs_gib", "16", "8", EffectKind::NotCarriedOut),
            ("volumes.db.size_gib", "16", "8", EffectKind::NotCarriedOut),
            ("network.firewall", "off", "on", EffectKind::Reconfigure),
            ("network.firewall", "on", "off", EffectKind::NotCarriedOut),
        ];
        for (field, before, after, effect) in cases {
            let (before, after) = (Some(before.to_owned()), Some(after.to_owned()));
            let change = FieldChange { field: field.to_owned(), before, after, remark: None };
            assert_eq!(effect_of_field(&change), effect, "{field}");
        }
        let new = FieldChange { before: None, ..change("volumes.db") };
        assert_eq!(effect_of_field(&new), EffectKind::AttachVolume);
        let gone = FieldChange { after: None, ..change("volumes.db") };
        assert_eq!(effect_of_field(&gone), EffectKind::NotCarriedOut);
    }
}
