//! The control socket (being built).
