//! The program `hubd`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use holdfast_manual::Section;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = match holdfast_manual::parse::<hubd::cli::Arguments>(Section::Administration) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let filter = EnvFilter::try_from_env("HOLDFAST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the system gives no threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(hubd::cli::run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
