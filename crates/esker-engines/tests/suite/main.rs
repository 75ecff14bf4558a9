//! The tests of the library, in one program: each that is linked by itself costs seconds.

mod import;
mod peers;
