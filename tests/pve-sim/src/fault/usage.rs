//! Reported use of guests and of the node.
//!
//! In: figures in percent. Out: lists that show them, until they are taken back. They are kept in a file each, so that they outlive a
//! restart of the simulator.
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::fail::{Fallible, host};
use crate::node::Node;

/// How much is used, in percent of what may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percent {
    /// CPU time.
    pub cpu: u64,
    /// Memory.
    pub memory: u64,
    /// The root disk.
    pub disk: u64,
}

fn file(run: &Path, vmid: Option<u32>) -> PathBuf {
    run.join("use").join(vmid.map_or_else(|| "node".to_owned(), |vmid| vmid.to_string()))
}

/// Sets the figures, or takes them back.
pub(super) fn set(node: &Node, vmid: Option<u32>, percent: Option<Percent>) -> Fallible<()> {
    if let Some(vmid) = vmid {
        node.world().guests.get(vmid)?;
    }
    let file = file(&node.paths.run(), vmid);
    let done = match percent {
        Some(percent) => {
            let folder = std::fs::create_dir_all(node.paths.run().join("use"));
            folder.and_then(|()| std::fs::write(&file, json!(percent).to_string()))
        }
        None => match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    done.map_err(|error| host("use mark", &error))
}

/// Puts the figures that were set into a row with `cpu`, and with `mem` and `disk` besides what they may be.
pub fn show(run: &Path, vmid: Option<u32>, row: &mut Map<String, Value>) {
    let text = std::fs::read_to_string(file(run, vmid)).ok();
    let Some(percent) = text.and_then(|text| serde_json::from_str::<Percent>(&text).ok()) else { return };
    row.insert("cpu".to_owned(), json!(f64::from(u32::try_from(percent.cpu).unwrap_or(100)) / 100.0));
    for (used, total, percent) in [("mem", "maxmem", percent.memory), ("disk", "maxdisk", percent.disk)] {
        if let Some(total) = row.get(total).and_then(Value::as_u64) {
            row.insert(used.to_owned(), json!(total / 100 * percent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_what_was_set_and_else_what_it_had() {
        let run = tempfile::tempdir().expect("a folder");
        let row = json!({ "cpu": 0.0, "mem": 1, "maxmem": 1_000, "disk": 2, "maxdisk": 2_000 });
        let mut map = row.as_object().expect("an object").clone();
        show(run.path(), Some(7), &mut map);
        assert_eq!(Value::Object(map.clone()), row);
        std::fs::create_dir(run.path().join("use")).expect("its folder");
        let percent = Percent { cpu: 97, memory: 96, disk: 10 };
        std::fs::write(file(run.path(), Some(7)), json!(percent).to_string()).expect("its file");
        show(run.path(), None, &mut map);
        assert_eq!(Value::Object(map.clone()), row, "of the node nothing was set");
        show(run.path(), Some(7), &mut map);
        let shown = json!({ "cpu": 0.97, "mem": 960, "maxmem": 1_000, "disk": 200, "maxdisk": 2_000 });
        assert_eq!(Value::Object(map), shown);
    }
}
