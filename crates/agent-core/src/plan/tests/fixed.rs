//! Tests of fields that no operation changes.

use super::*;

fn reported(set_up: impl Fn(&mut World), code: ErrorCode) -> String {
    let mut world = world(1);
    set_up(&mut world);
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let of_code = plan.verdicts[0].conditions.iter().filter(|condition| condition.code == code);
    of_code.map(|condition| condition.message.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_nothing_carries_out_is_reported() {
    let rows: [(Situation, &str); 4] = [
        (("vmid", |w| w.desired[0].vmid = Some(vmid(305))), "names VMID 305, and it is 300"),
        (
            ("customer", |w| w.desired[0].customer = "umbrella".parse().unwrap()),
            "customer umbrella, and it was made with acme",
        ),
        (
            ("golden", |w| w.desired[0].golden = "2026.12.1".parse().unwrap()),
            "golden 2026.12.1, and it was made with 2026.11.1",
        ),
        (("volume", |w| w.desired[0].volumes.clear()), "a volume at /srv/db that the document does not name"),
    ];
    for ((name, set_up), words) in rows {
        let said = reported(set_up, ErrorCode::Unsupported);
        assert!(said.contains(words), "{name}: {said}");
    }
    assert_eq!(reported(|w| w.desired[0].vmid = Some(vmid(300)), ErrorCode::Unsupported), "");
}

/// It was tried again and again, and the reason was in the operation alone.
#[test]
fn a_root_disk_smaller_than_its_image_is_reported_and_not_tried() {
    let absent = |w: &mut World| {
        *w = world(0);
        w.desired = vec![guest(1)];
        w.observed.golden_roots.insert("2026.11.1".parse().unwrap(), (8 << 30) + 1);
    };
    let said = reported(absent, ErrorCode::Range);
    assert!(said.contains("8589934593 bytes: write size.rootfs_gib = 9 or more"), "{said}");
    let mut fits = world(0);
    absent(&mut fits);
    fits.desired[0].size.rootfs_gib = 9.try_into().unwrap();
    assert_eq!(fits.plan().actions.len(), 1, "{}", fits.plan());
}

/// Proxmox renames the volumes of a template, so it is no longer provably ours; why that is so is said.
#[test]
fn a_template_with_renamed_volumes_is_reported_as_a_template() {
    let template = |w: &mut World| {
        w.facts(300).template = Template::Yes;
        w.facts(300).volumes = BTreeSet::from([VolumeId::new("fast:300/base-300-disk-0.raw")]);
    };
    let said = reported(template, ErrorCode::ForeignGuest);
    assert!(said.contains("somebody turned it into a template: it cannot be started"), "{said}");
}
