//! The `agentd` program; everything is in the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    agentd::cli::main()
}
