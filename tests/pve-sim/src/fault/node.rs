//! Manual edits of the node, and new guests.
//!
//! In: what an administrator does or what happens to the machine. Out: a state that lasts until it is put right by another edit.
use std::sync::Arc;

use crate::fail::{Fallible, Refusal, host};
use crate::guest::config_folder::Writable;
use crate::node::Node;

/// Sets the reported usage of a storage.
pub(super) fn fill(node: &Node, storage: &str, percent: Option<u64>) -> Fallible<()> {
    node.world().storage.get(storage)?;
    let folder = node.paths.run().join("filled");
    let mark = folder.join(storage);
    let done = match percent {
        Some(percent) => {
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&mark, percent.to_string()))
        }
        None => match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    done.map_err(|error| host("storage mark", &error))
}

/// Takes the quorum away, or gives it back.
pub(super) fn quorum(node: &Node, held: bool) {
    node.world().guests.set_writable(if held { Writable::Yes } else { Writable::No });
}

/// Makes an empty volume of a gibibyte and attaches it.
pub(super) fn attach(node: &Arc<Node>, vmid: u32, what: (&str, &str, &str)) -> Fallible<()> {
    let (key, storage, mount) = what;
    let mut world = node.world();
    if world.guests.get(vmid)?.main.get(key).is_some() {
        return Err(Refusal::die(format!("{key} of CT {vmid} is in use")));
    }
    let volid = world.store().allocate(storage, vmid, 1 << 30)?;
    world.guests.change(vmid, |config| {
        config.main.set(key, format!("{volid},mp={mount},size=1G"));
        Ok(())
    })
}

/// The configuration of a guest that has nothing to do with the one whose number it has.
pub(super) fn newcomer(vmid: u32, storage: &str) -> String {
    format!(
        "arch: amd64\nhostname: newcomer\nmemory: 128\nostype: debian\nrootfs: {storage}:{vmid}/vm-{vmid}-disk-0.raw,size=1G\nswap: 0\nunprivileged: 1\n"
    )
}

/// Lets a token expire.
pub(super) fn expire(node: &Node, id: &str, expire: i64) -> Fallible<()> {
    let (user, short) = id
        .rsplit_once('!')
        .ok_or_else(|| Refusal::die(format!("value '{id}' does not look like a valid token ID")))?;
    let mut world = node.world();
    let missing = || Refusal::die(format!("no such token '{short}' for user '{user}'"));
    let token =
        world.access.users.get_mut(user).and_then(|held| held.tokens.get_mut(short)).ok_or_else(missing)?;
    token.expire = expire;
    world.save_access()
}

/// Takes a guest out of its pool.
pub(super) fn unpool(node: &Node, vmid: u32) -> Fallible<()> {
    let mut world = node.world();
    world.guests.get(vmid)?;
    for pool in world.access.pools.values_mut() {
        pool.vms.remove(&vmid);
    }
    world.save_access()
}

/// The pools that a guest is in.
pub(super) fn pools(node: &Node, vmid: u32) -> Vec<String> {
    let world = node.world();
    let all = world.access.pools.iter();
    all.filter(|(_, pool)| pool.vms.contains(&vmid)).map(|(name, _)| name.clone()).collect()
}

/// Puts a guest into pools.
pub(super) fn join(node: &Node, vmid: u32, pools: &[String]) -> Fallible<()> {
    let mut world = node.world();
    for (name, pool) in &mut world.access.pools {
        if pools.contains(name) {
            pool.vms.insert(vmid);
        }
    }
    world.save_access()
}
