//! Identity of the current boot.

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// A kernel's boot id is 36 characters.
const BOOT_ID_BYTES_MAX: usize = 64;

/// The line the kernel writes is some hundred bytes.
const STAT_BYTES_MAX: usize = 4 * 1024;

/// Which boot of the guest this is. A container shows its host's boot id, so the start time of PID 1 is added to it:
/// otherwise a restart of the container would not be seen. None when the kernel does not show it.
pub fn id(paths: &Paths) -> Result<Option<String>, FileError> {
    let mut kernel = None;
    for path in paths.boot_ids() {
        if let Some(bytes) = file::read(&path, BOOT_ID_BYTES_MAX, Eyes::All)? {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            kernel = kernel.or((!text.is_empty()).then_some(text));
        }
    }
    let Some(kernel) = kernel else { return Ok(None) };
    let about = file::read(&paths.first_process(), STAT_BYTES_MAX, Eyes::All)?;
    let started = about.and_then(|about| started(&String::from_utf8_lossy(&about)).map(str::to_owned));
    Ok(Some(started.map_or(kernel.clone(), |started| format!("{kernel}-{started}"))))
}

/// The twenty-second field of `stat`, clock ticks since the host booted. The second, the program's name in brackets, may
/// hold anything, so it is counted from its end.
fn started(stat: &str) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).filter(|field| field.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_first_process_is_found_behind_an_odd_name() {
        let rest = "S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 22 33";
        assert_eq!(started(&format!("1 (init) {rest}")), Some("987654"));
        assert_eq!(started(&format!("1 (a ) b) {rest}")), Some("987654"));
        for bad in ["", "1 (init)", "1 (init) S 0 1", "no brackets"] {
            assert_eq!(started(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_restart_of_the_container_is_another_boot() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        let kernel = id(&paths).unwrap().unwrap();
        std::fs::create_dir_all(root.path().join("proc/1")).unwrap();
        let stat =
            |ticks: u32| format!("1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {ticks} 22 33");
        std::fs::write(paths.first_process(), stat(11)).unwrap();
        let first = id(&paths).unwrap().unwrap();
        std::fs::write(paths.first_process(), stat(12)).unwrap();
        assert_ne!(Some(first.clone()), id(&paths).unwrap());
        assert_eq!(first, format!("{kernel}-11"));
    }
}
