//! What Proxmox sends: task names, volumes, configurations of guests.

use crate::model::mark::{self, Mark};
use crate::proxmox::config::{Digest, GuestConfig};
use crate::proxmox::upid::Upid;
use crate::proxmox::volume::VolumeId;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        words(text);
    }
    let Ok(value) = serde_json::from_slice(data) else { return };
    let Ok(config) = GuestConfig::read(&value) else { return };
    let shown = format!("{config:?}");
    if let Some(env) = config.env.as_ref().map(|env| env.expose()).filter(|env| env.len() >= 16) {
        let elsewhere = config.written.values().chain([&config.description]).any(|text| text.contains(env));
        assert!(!shown.contains(&format!("{env:?}")) || elsewhere, "it shows its environment");
    }
    assert!(!config.written.contains_key("env") && !config.written.contains_key("digest"));
    for (key, text) in &config.other {
        assert_eq!(config.written.get(key), Some(text), "{key} is lost");
    }
    for (slot, disk) in &config.mounts {
        assert!(config.written.contains_key(&format!("mp{slot}")));
        assert!(disk.volume().is_none_or(|volume| config.volumes().contains(volume)));
    }
    assert_eq!(Digest::parse(config.digest.as_str()).as_ref(), Some(&config.digest));
}

fn words(text: &str) {
    if let Ok(upid) = text.parse::<Upid>() {
        assert_eq!(upid.to_string(), text);
        assert_eq!(text.split(':').count(), 9, "another number of parts");
        assert!(!text.contains('/') && !text.contains('\n'), "it could lead a path elsewhere");
        assert!(!upid.node().is_empty() && !upid.kind().is_empty() && upid.owner().contains('@'));
        if let Some(vmid) = upid.vmid() {
            assert!(text.contains(&vmid.to_string()));
        }
        let _ = upid.start_epoch_s();
    }
    if let Ok(volume) = text.parse::<VolumeId>() {
        assert_eq!(volume.to_string(), text);
        assert!(text.starts_with(&format!("{}:", volume.storage())) && !text.contains([',', ' ', '\n']));
    }
    let (tags, description) = text.split_once('\n').unwrap_or((text, ""));
    let tags = tags.split([';', ',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    match mark::read(&tags, description) {
        Mark::Of(uid) => {
            assert!(mark::tags(uid).iter().all(|tag| tags.contains(tag)), "half a mark is taken for one");
            // White space around the identity is read over.
            let words: Vec<&str> =
                description.lines().next().unwrap_or_default().split_whitespace().collect();
            assert_eq!(words.join(" "), mark::first_line(uid));
        }
        Mark::Copy { of, by } => {
            assert!(mark::copy_tags(by).iter().all(|tag| tags.contains(tag)), "half a mark is taken for one");
            assert!(description.starts_with(&mark::copy_line(of, by)));
        }
        Mark::None => assert!(!tags.contains(mark::TAG)),
        Mark::Broken => {}
    }
}
