//! Tests of the engine against the simulated Proxmox.
//!
//! | module | shows |
//! | --- | --- |
//! | `attach` | a volume for a guest that was made; protection ends on |
//! | `detached` | a volume that was detached by hand |
//! | `claim` | a used claim is reported, and is removed with the next restart |
//! | `destroy` | a signed destroy takes exactly what was signed for |
//! | `brake` | a bulk change in small documents gets no further than in a large one |
//! | `limits` | limits of CPU time follow the document, from the first start on |
//! | `network` | a guest's network and resolver follow the document |
//! | `drift` | the reconcile loop from an empty host to drift that is healed |
//! | `backup` | dead backup workers: a frozen guest, an orphan's archive |
//! | `missing_backup` | an archive that its storage lost, and that came back |
//! | `bulk` | a bulk volume is in the archives that go to its target, and in no others |
//! | `restore_copy` | a copy of a guest, isolated and never taken for it |
//! | `restore_test` | a backup, tried in a guest that is thrown away |
//! | `counterpart` | the same through a read-only twin of its storage, by a token that has nothing there |
//! | `spoken_test` | the same with its controller heard, on a bridge that ends at the agent |
//! | `roll_back` | a guest goes back and is made fresh, once |
//! | `snapshot` | snapshots taken, refused, lost, expired |
//! | `lanes` | what guests request, one after another and concurrently |
//! | `jobs` | what operators signed, from the text to the effect |
//! | `adopt` | guests that our records do not know, taken over by a signature |
//! | `approve` | a golden waits for a signature over its bytes |
//! | `entries` | storage entries made with sealed credentials, once and only as signed |
//! | `fault` | lost replies, dead workers, other owners' guests |
//! | `levels` | a level of the document, from the sample to the end of its condition |
//! | `long` | operations that take longer than expected are followed to their end |
//! | `maintenance` | nothing is begun in a maintenance of the host, and all is caught up after it |
//! | `lost` | a guest destroyed by hand, and its number reused |
//! | `lost_disks` | on which storages its disks come back |
//! | `hand` | edits by hand at a chosen moment |
//! | `hand_over` | a volume changes hands, both guests held; else it is as it was |
//! | `swap` | a copy takes the place of its guest, which is kept; else all is as it was |
//! | `protection` | what is promised about backups, raised by documents and lowered by a signature |
//! | `window` | quiesce windows: granted, captured, labelled, and what becomes of them when a party fails |
//! | `offsite` | backups to a backup server: encrypted with K or none, and everything that is made of one |
//! | `servers` | backup servers called by their own API: what is reported about them, what they verify, who prunes |
//! | `parked` | what a person answers to parked work, and what a restart plans |
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod adopt;
mod approve;
mod attach;
mod backup;
mod brake;
mod bulk;
mod claim;
mod destroy;
mod detached;
mod disks;
mod drift;
mod entries;
mod fault;
mod filter;
mod growth;
mod hand;
mod inherited;
mod jobs;
mod lanes;
mod levels;
mod limits;
mod long;
mod lost_disks;
mod maintenance;
mod missing_backup;
mod missing_guest;
mod network;
mod offsite;
mod parked;
mod protection;
mod read_only_entry;
mod reassign_volume;
mod rebase_guest;
mod restore_copy;
mod restore_test;
mod roll_back;
mod servers;
mod snapshot;
mod spoken_test;
mod storage;
mod swap;
mod update;
mod usage;
mod window;
mod work_orders;
mod world;
