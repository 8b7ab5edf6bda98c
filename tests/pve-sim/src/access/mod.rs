//! Access control: users, tokens, roles, pools and access lists.
pub mod config;
pub mod credential;
pub mod evaluate;
pub mod privileges;
