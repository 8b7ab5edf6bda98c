//! The engine against the simulated Proxmox: over TLS, with scoped tokens, real archives and a real store.
//!
//! | module | shows |
//! | --- | --- |
//! | `attach` | a volume for a guest that was made; protection ends on |
//! | `crash` | killed at every point of *provision* and run again: the same end, no guest twice, no volume left |
//! | `drift` | the reconcile loop from an empty box to drift that is healed |
//! | `fault` | lost replies, dead workers, somebody else's guests |
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod attach;
mod crash;
mod drift;
mod fault;
mod world;
