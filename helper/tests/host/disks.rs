//! Loop devices that detach when the test ends.

use std::fs::File;
use std::path::PathBuf;

use crate::test_host::run;

/// Enough for the smallest xfs; the files are sparse.
const SIZE: &str = "320M";

/// A loop device over a file.
pub struct LoopDisk {
    /// Such as `/dev/loop3`.
    pub device: String,
    /// Its serial number, as the helper sees it.
    pub file: String,
    pub uuid: String,
    partitioned: bool,
    /// While this is open the device stays; the tool that takes it down was called already.
    _held: Option<File>,
}

impl LoopDisk {
    /// A whole disk with a fresh file system.
    pub fn new(name: &str, filesystem: &str) -> Self {
        Self::with_uuid(name, filesystem, &fresh_uuid())
    }

    pub fn with_uuid(name: &str, filesystem: &str, uuid: &str) -> Self {
        let file = empty_file(name);
        make_filesystem(filesystem, &file, uuid);
        Self::attached(file, uuid)
    }

    /// One GPT partition with a file system; gives the partition's UUID too.
    pub fn partitioned(name: &str, label: &str) -> (Self, String) {
        let file = empty_file(name);
        let script = format!("{file}.sfdisk");
        std::fs::write(&script, format!("label: {label}\nstart=2048,size=260000\n")).unwrap();
        run("sh", &["-c", &format!("sfdisk -q --no-reread {file} < {script}")]);
        let part_uuid = match label {
            "gpt" => run("sfdisk", &["--part-uuid", &file, "1"]).to_lowercase(),
            _ => format!("{}-01", run("sfdisk", &["--disk-id", &file]).trim_start_matches("0x")),
        };
        let mut disk = Self::attached(file, &fresh_uuid());
        // A kernel that cannot read partition tables of loop devices is given the partitions.
        if !std::path::Path::new(&format!("{}p1", disk.device)).exists() {
            run("addpart", &[&disk.device, "1", "2048", "260000"]);
        }
        disk.partitioned = true;
        let node = disk.node();
        make_filesystem("ext4", &node, &disk.uuid);
        (disk, part_uuid)
    }

    /// Another partition after the first, with its own file system; returns its UUID.
    pub fn second_partition(&self) -> String {
        run("addpart", &[&self.device, "2", "262144", "260000"]);
        let uuid = fresh_uuid();
        make_filesystem("ext4", &format!("{}p2", self.device), &uuid);
        uuid
    }

    /// Whatever a file holds, as a disk.
    pub fn attached(file: String, uuid: &str) -> Self {
        let device = run("losetup", &["--find", "--show", "--partscan", &file]);
        let held = Some(File::open(&device).unwrap());
        run("losetup", &["--detach", &device]);
        Self { device, file, uuid: uuid.to_owned(), partitioned: false, _held: held }
    }

    /// Where the file system is.
    pub fn node(&self) -> String {
        if self.partitioned { format!("{}p1", self.device) } else { self.device.clone() }
    }

    /// Its entry in the policy, by the drive's serial number.
    pub fn target(&self, name: &str, filesystem: &str) -> String {
        self.target_by(name, filesystem, &format!("serial = \"{}\"", self.file))
    }

    pub fn target_by(&self, name: &str, filesystem: &str, identity: &str) -> String {
        format!(
            "[[target]]\nname = \"{name}\"\nuuid = \"{}\"\nfilesystem = \"{filesystem}\"\n{identity}\n",
            self.uuid
        )
    }
}

pub fn fresh_uuid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap().trim().to_owned()
}

pub fn empty_file(name: &str) -> String {
    let path = PathBuf::from("/run").join(format!("{name}.img"));
    let path = path.to_str().unwrap().to_owned();
    run("truncate", &["--size", SIZE, &path]);
    path
}

fn make_filesystem(filesystem: &str, place: &str, uuid: &str) {
    match filesystem {
        "ext4" => run("mkfs.ext4", &["-q", "-F", "-U", uuid, place]),
        "xfs" => run("mkfs.xfs", &["-q", "-f", "-m", &format!("uuid={uuid}"), place]),
        "btrfs" => run("mkfs.btrfs", &["-q", "-f", "-U", uuid, place]),
        other => panic!("{other}"),
    };
}
