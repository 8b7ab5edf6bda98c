//! The `agentd` program; everything is in the library.
#![forbid(unsafe_code)]

use std::alloc::System;

use zeroizing_alloc::ZeroAlloc;

/// Freed memory is wiped: libraries that encrypt, or carry a request, keep copies of a key that they do not wipe.
#[global_allocator]
static MEMORY: ZeroAlloc<System> = ZeroAlloc(System);

fn main() -> std::process::ExitCode {
    agentd::cli::main()
}
