//! The outside world, each part behind a narrow door.
//!
//! | module | door to |
//! | --- | --- |
//! | [`privilege`] | what this process may do |

pub mod privilege;
