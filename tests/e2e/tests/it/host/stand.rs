//! The machine, disk and packages of the host tests.

use std::path::{Path, PathBuf};
use std::time::Instant;

use e2e::stage::Golden;

use super::disk::Disk;
use super::machine::Machine;
use super::proxmox;

/// All of it.
pub struct Stand {
    pub machine: Machine,
    pub disk: Disk,
    pub golden: Golden,
    pub folder: PathBuf,
    begun: Instant,
}

fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask host`"))
        .into()
}

impl Stand {
    /// Unpacks Debian into a folder of this name, installs Proxmox into it, makes a disk. Leftovers of an earlier failed
    /// run are removed.
    pub fn new(name: &str) -> Self {
        let folder = named("HOLDFAST_HOST_FOLDER").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        let mut machine = Machine::unpack(&named("HOLDFAST_HOST_DEBIAN"), &folder);
        let golden = Golden::read(&named("HOLDFAST_E2E_GOLDEN")).unwrap();
        proxmox::lay(&machine, &named("HOLDFAST_HOST_SIMULATOR"), &golden);
        let packages = machine.path("/srv/packages");
        std::fs::create_dir_all(&packages).unwrap();
        for package in std::fs::read_dir(named("HOLDFAST_HOST_PACKAGES")).unwrap() {
            let package = package.unwrap();
            std::fs::copy(package.path(), packages.join(package.file_name())).unwrap();
        }
        let disk = Disk::new(&folder);
        machine.attach(&disk.device);
        Self { machine, disk, golden, folder, begun: Instant::now() }
    }

    /// The package's file in there.
    pub fn package(&self, name: &str) -> String {
        let inside = self.machine.path("/srv/packages");
        let mut all = std::fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().file_name());
        let file = all.find(|file| file.to_str().unwrap().starts_with(&format!("{name}_")));
        format!("/srv/packages/{}", file.unwrap_or_else(|| panic!("no package {name}")).to_str().unwrap())
    }

    /// Prints the heading of a step.
    pub fn step(&self, what: &str) {
        println!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f32());
    }

    /// Prints an observation.
    pub fn saw(&self, what: &str) {
        println!("            {what}");
    }

    /// All went well: nothing is kept.
    pub fn finish(self) {
        let folder = self.folder.clone();
        self.step("done");
        drop(self);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Text into a file of the machine, from outside.
pub fn write(machine: &Machine, inside: &str, text: &str) {
    let path = machine.path(inside);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
    std::fs::write(path, text).unwrap();
}
