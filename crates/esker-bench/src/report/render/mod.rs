//! Blocks as HTML, Markdown, text and CSV. Each renderer takes every block; CSV has tables only.

pub mod csv;
pub mod html;
pub mod markdown;
pub mod text;
