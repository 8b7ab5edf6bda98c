//! Hand edits (being built).
