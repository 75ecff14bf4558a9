//! Gives the shared library its name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(system.as_str(), "linux" | "android" | "freebsd" | "netbsd" | "dragonfly") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libesker_leveldb.so.1");
        // Threads of an open database run its code.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
