//! Integration tests of the image builder.

mod debian;
mod tiny;
mod tiny_network;
