//! Integration tests of the image builder.

mod debian;
mod intake;
mod tiny;
mod tiny_network;
