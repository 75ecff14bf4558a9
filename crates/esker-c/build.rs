//! Gives the shared library its name and its symbol versions.

fn main() {
    println!("cargo:rerun-if-changed=esker.map");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(system.as_str(), "linux" | "android" | "freebsd" | "netbsd" | "dragonfly") {
        let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libesker.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={directory}/esker.map");
        // Threads of an open database run its code.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
