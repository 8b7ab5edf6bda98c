//! `cargo xtask golden`: builds the archive that guests are restored from, after `golden/recipe.toml`.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with goldens.
#[derive(Debug, Subcommand)]
pub enum GoldenTask {
    /// Print the path of the recipe that builds would follow, after reading it.
    Recipe {
        /// The recipe; the workspace's own when absent.
        #[arg(long)]
        recipe: Option<PathBuf>,
    },
}

/// Runs one golden task.
pub fn run(task: GoldenTask) -> anyhow::Result<()> {
    match task {
        GoldenTask::Recipe { recipe } => {
            let path = recipe.unwrap_or_else(|| workspace_root().join("golden/recipe.toml"));
            let text = std::fs::read_to_string(&path)
                .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?;
            println!("{} ({} bytes)", path.display(), text.len());
            Ok(())
        }
    }
}

/// The folder of the workspace's `Cargo.toml`: xtask always runs from its own checkout.
fn workspace_root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
