//! The storage operations of a Windows node.
