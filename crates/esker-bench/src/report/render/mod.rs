//! Blocks as HTML, Markdown and text: each renderer takes every block. And fields as lines of CSV.

pub mod csv;
pub mod html;
pub mod markdown;
pub mod text;
