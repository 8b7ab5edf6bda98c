//! Why seeding failed.

/// Why a state folder cannot be seeded.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file of the seed or the state.
    #[error("seeding failed at {what}")]
    File {
        what: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A volume or archive.
    #[error("seeding failed at volume {what}: {why}")]
    Volume { what: String, why: String },
}
