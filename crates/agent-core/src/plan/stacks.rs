//! Stacks that did not start again after a backup.
//!
//! What comes in: the last release of each guest, and the last hello. What goes out: a condition. A later release without
//! them ends it, and so does a later hello that says that all is well. Nothing is done about it here: their controller tries
//! them again and again.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::report::{Condition, Health};

use crate::model::records::{GuestRecord, StacksDown};

/// What a person should know.
pub(super) fn down(all: &[StacksDown], record: &GuestRecord) -> Option<Condition> {
    let place = all.binary_search_by_key(&record.uid, |down| down.guest).ok()?;
    let said = all.get(place)?;
    let well = record.hello.as_ref().is_some_and(|hello| hello.health == Health::Well && hello.at > said.at);
    if well {
        return None;
    }
    let each: Vec<String> = said.down.iter().map(|one| format!("{} ({})", one.stack, one.why)).collect();
    let message = format!(
        "these stacks were stopped for a backup at {} and did not start again: {}; look at them in the guest",
        said.at.strftime("%Y-%m-%d %H:%M:%SZ"),
        each.join(", ")
    );
    Some(Condition { code: ErrorCode::Broken, message })
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::local::window::DownStack;
    use jiff::Timestamp;

    use super::*;
    use crate::model::records::{Access, HelloRecord, Place};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn record(n: u128, hello: Option<(i64, Health)>) -> GuestRecord {
        let said = |(second, health)| HelloRecord {
            reported: Default::default(),
            version: "0.1.0".to_owned(),
            health,
            boot_id: "b".to_owned(),
            build: None,
            at: at(second),
        };
        GuestRecord {
            uid: holdfast_protocol::id::GuestUid::new(uuid::Uuid::from_u128(n)),
            name: "web-1".parse().unwrap(),
            customer: "acme".parse().unwrap(),
            golden: "2026.11.1".parse().unwrap(),
            place: Place::Nowhere,
            access: Access::Open,
            token_generation: 1,
            hello: hello.map(said),
        }
    }

    #[test]
    fn what_did_not_come_back_is_reported_until_its_controller_says_otherwise() {
        let stack = DownStack { stack: "shop".parse().unwrap(), why: "exit 1".to_owned() };
        let all = [StacksDown { guest: record(1, None).uid, down: vec![stack], at: at(100) }];
        let reported = down(&all, &record(1, None)).unwrap();
        assert!(
            reported.code == ErrorCode::Broken && reported.message.contains("shop (exit 1)"),
            "{reported:?}"
        );
        assert!(reported.message.contains("2027-01-15 08:01:40Z"), "{reported:?}");
        for (hello, still) in [
            ((99, Health::Well), true),
            ((100, Health::Well), true),
            ((101, Health::Unwell), true),
            ((101, Health::Well), false),
        ] {
            assert_eq!(down(&all, &record(1, Some(hello))).is_some(), still, "{hello:?}");
        }
        assert_eq!(down(&all, &record(2, None)), None);
    }
}
