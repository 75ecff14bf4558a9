//! Figures and lists as text, the same in tables, charts and sentences.

pub mod number;
pub mod words;
