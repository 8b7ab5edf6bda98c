//! Who may do what: users, tokens, roles, pools and access lists, in the form of the real `user.cfg`.
pub mod config;
pub mod credential;
pub mod evaluate;
pub mod privileges;
