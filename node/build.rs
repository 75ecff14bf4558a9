//! Tells the linker that the library stays in memory once it is loaded: threads of the engine may
//! still end when the worker thread that loaded it is gone.

fn main() {
    napi_build::setup();
}
