//! What the linker of macOS must be told so that the symbols of Python may stay open.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
