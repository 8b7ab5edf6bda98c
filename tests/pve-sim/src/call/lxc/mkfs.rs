//! The output of a new file system.
//!
//! In: a size. Out: the lines that the real worker lets through. The numbers follow the defaults of ext4: 4 KiB blocks (1 KiB below
//! 512 MiB), groups of eight blocks' worth of bitmap, backups of the superblock in groups 1 and powers of 3, 5 and 7.

/// The lines for a filesystem of `bytes`.
#[must_use]
pub fn lines(bytes: u64, uuid: &str) -> Vec<String> {
    let small = bytes < 512 << 20;
    let (block, per_inode, first) = if small { (1024, 4096, 1) } else { (4096, 16_384, 0) };
    let blocks = bytes / block;
    let group = block * 8;
    // Inodes are spread evenly over the groups, in whole blocks of their table (256 bytes each).
    let groups = blocks.div_ceil(group).max(1);
    let inodes = (bytes / per_inode).div_ceil(groups).next_multiple_of(block / 256) * groups;
    let backups: Vec<String> =
        backup_groups(groups).into_iter().map(|n| (n * group + first).to_string()).collect();
    let mut out = vec![
        format!("Creating filesystem with {blocks} {}k blocks and {inodes} inodes", block / 1024),
        format!("Filesystem UUID: {uuid}"),
        "Superblock backups stored on blocks: ".to_owned(),
    ];
    // A line with a single number does not get through the real worker's filter.
    out.extend(
        backups.chunks(9).filter(|chunk| chunk.len() > 1).map(|chunk| format!("\t{}", chunk.join(", "))),
    );
    out
}

fn backup_groups(groups: u64) -> Vec<u64> {
    let mut found = vec![1];
    for base in [3_u64, 5, 7] {
        found.extend(std::iter::successors(Some(base), |n| n.checked_mul(base)).take_while(|n| *n < groups));
    }
    found.retain(|n| *n < groups);
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_sizes() {
        let last = |bytes: u64| lines(bytes, "u").pop().unwrap_or_default();
        assert_eq!(lines(1 << 30, "u")[0], "Creating filesystem with 262144 4k blocks and 65536 inodes");
        assert_eq!(last(1 << 30), "\t32768, 98304, 163840, 229376");
        assert_eq!(last(2 << 30), "\t32768, 98304, 163840, 229376, 294912");
        assert_eq!(last(4 << 30), "\t32768, 98304, 163840, 229376, 294912, 819200, 884736");
        assert_eq!(lines(10 << 20, "u")[0], "Creating filesystem with 10240 1k blocks and 2560 inodes");
        assert_eq!(last(10 << 20), "Superblock backups stored on blocks: ");
    }
}
