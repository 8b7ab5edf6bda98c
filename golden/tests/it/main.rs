//! Integration tests of the golden image's builder.

mod debian;
mod tiny;
mod tiny_network;
