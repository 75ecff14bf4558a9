//! Databases that are lies under checksums which are right: nobody but an attacker writes them.
//! Whatever is asked of them ends with an error of a kind that says so, or with a right answer, in
//! work and memory in proportion to the files.
#![cfg(target_os = "linux")]

mod changes;
mod counting;
mod logs;
mod look_alikes;
mod manifests;
mod random;
mod tables;
mod trying;
mod values;
mod writing;
