//! Loading C libraries at run time, so that nobody has to build RocksDB to try Esker.
//!
//! Where a library is looked for: the path given with `--lib NAME=PATH`, else the one in
//! `$ESKER_LIB_NAME`, else the directory that `scripts/peers` fills, else the names that the
//! system's loader knows. Libraries are never unloaded: RocksDB keeps threads of its own that
//! outlive a database.

use super::{EngineError, Result};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a library is called and how to get it, and those that were loaded.
pub struct LibrarySpec<A: 'static> {
    /// The engine's name.
    pub engine: &'static str,
    /// Names for the system's loader, best first.
    pub names: &'static [&'static str],
    /// File names inside the directory that `scripts/peers` fills.
    pub cached: &'static [&'static str],
    /// What to install, for the error.
    pub install: &'static str,
    /// The libraries loaded so far; they live as long as the process.
    pub loaded: Mutex<Vec<&'static Loaded<A>>>,
}

/// A set of C functions, loaded. Made by `c_api!`.
pub trait CApi: Sized {
    /// Looks every function up; the error names the one that is missing.
    fn from_library(library: &Library) -> std::result::Result<Self, String>;
}

/// A library in use.
pub struct Loaded<A> {
    /// Its functions.
    pub api: A,
    /// The path or name it was loaded by.
    pub path: String,
}

impl<A> Loaded<A> {
    /// Its name without the directory: figures are kept and shown where that one is not.
    pub fn file_name(&self) -> String {
        let path = Path::new(&self.path);
        path.file_name().map_or_else(|| self.path.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// Loads a library, or finds it among those already loaded.
pub fn load<A: CApi>(spec: &'static LibrarySpec<A>, given: Option<&Path>) -> Result<&'static Loaded<A>> {
    let mut loaded = spec.loaded.lock().unwrap_or_else(PoisonError::into_inner);
    let candidates = candidates(spec, given);
    // All of them first: asking the loader again for a better one that is not there takes its time
    // at every opening.
    let is_known =
        |candidate: &PathBuf| loaded.iter().find(|l| candidate.to_string_lossy() == l.path.as_str()).copied();
    if let Some(known) = candidates.iter().find_map(is_known) {
        return Ok(known);
    }
    let mut failure = None;
    for candidate in candidates {
        let path = candidate.to_string_lossy().into_owned();
        // SAFETY: running the library's initialisers is what the user requested by installing it or
        // naming it; those of the libraries searched for here only set up tables of the library
        // itself.
        let library = match unsafe { Library::new(&candidate) } {
            Ok(library) => library,
            Err(e) => {
                // For a bare name, not being there is the expected case and the message of the
                // loader adds nothing.
                if candidate.components().count() > 1 {
                    failure = Some(format!("{path}: {}", first_line(&e.to_string())));
                }
                continue;
            }
        };
        match A::from_library(&library) {
            Ok(api) => {
                std::mem::forget(library);
                let entry: &'static Loaded<A> = Box::leak(Box::new(Loaded { api, path }));
                loaded.push(entry);
                return Ok(entry);
            }
            Err(missing) => failure = Some(format!("{path} has no function {missing}")),
        }
    }
    let found = failure.map(|f| format!(" ({f})")).unwrap_or_default();
    Err(EngineError(format!(
        "{}: library not found{found}; run scripts/peers, or install {}, or give {}",
        spec.engine,
        spec.install,
        library_option(spec.engine)
    )))
}

/// The option of the benchmarks that names the library of an engine.
pub fn library_option(engine: &str) -> String {
    format!("--lib {engine}=PATH")
}

fn candidates<A>(spec: &LibrarySpec<A>, given: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = given {
        return vec![path.to_path_buf()];
    }
    let variable = format!("ESKER_LIB_{}", spec.engine.to_uppercase());
    if let Some(path) = std::env::var_os(variable).filter(|p| !p.is_empty()) {
        return vec![PathBuf::from(path)];
    }
    let mut candidates = Vec::new();
    if let Some(directory) = peers_directory() {
        candidates.extend(spec.cached.iter().map(|name| directory.join(name)).filter(|path| path.exists()));
    }
    candidates.extend(spec.names.iter().map(PathBuf::from));
    candidates
}

/// Where `scripts/peers` puts libraries that no package manager installs.
pub fn peers_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("ESKER_PEERS")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("esker/peers")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/esker/peers")))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

/// A path as C wants it.
pub fn c_path(engine: &str, path: &Path) -> Result<CString> {
    CString::new(path.to_string_lossy().as_bytes())
        .map_err(|_| EngineError(format!("{engine}: the path {} holds a zero byte", path.display())))
}

/// Copies a string that C allocated and gives it back with `free`.
///
/// # Safety
/// `text` is null or a zero-terminated string that `free` may release, and nobody else uses it.
pub unsafe fn take_string(text: *mut c_char, free: unsafe extern "C" fn(*mut c_void)) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, zero-terminated and ours, by the contract of this function.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used after this.
    unsafe { free(text.cast()) };
    Some(copy)
}

/// Bytes that C points to, for as long as the caller says they live.
///
/// # Safety
/// `data` points to `len` readable bytes that nothing changes for the lifetime `'a`, or `len` is 0.
pub unsafe fn bytes<'a>(data: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: not null, and the rest is the contract of this function.
    unsafe { std::slice::from_raw_parts(data.cast(), len) }
}

/// Declares a struct of C functions, each looked up by its own name when the library is loaded;
/// those of the struct that it is `over` by theirs with a prefix.
macro_rules! c_api {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(over $base:ident, $prefix:literal)? {
        $(fn $function:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*
    } optional {
        $(fn $extra:ident($($extra_argument:ident: $extra_type:ty),* $(,)?) $(-> $extra_result:ty)?;)*
    } data {
        $($datum:ident;)*
    }) => {
        $(#[$meta])*
        #[allow(non_snake_case)] // C names are kept as they are.
        $vis struct $name {
            $(#[doc = concat!("Functions whose names begin with `", $prefix, "`.")] pub base: $base,)?
            $(pub $function: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_argument: $extra_type),*) $(-> $extra_result)?>,)*
            $(pub $datum: usize,)*
        }

        impl $name {
            /// Looks every function up under its name behind `prefix`.
            pub fn find(library: &libloading::Library, prefix: &str) -> std::result::Result<Self, String> {
                let full = |name: &str| format!("{prefix}{name}");
                Ok($name {
                    $(base: $base::find(library, $prefix)?,)?
                    // SAFETY: the declared type is that of the C header of this name; the library
                    // is never unloaded.
                    $($function: unsafe {
                        let name = full(stringify!($function));
                        *library.get(name.as_bytes()).map_err(|_| name)?
                    },)*
                    // SAFETY: as above.
                    $($extra: unsafe {
                        library.get(full(stringify!($extra)).as_bytes()).ok().map(|symbol| *symbol)
                    },)*
                    // SAFETY: the symbol is a constant pointer, initialised when the library was
                    // loaded; kept as an address.
                    $($datum: unsafe {
                        let name = full(stringify!($datum));
                        **library.get::<*const usize>(name.as_bytes()).map_err(|_| name)?
                    },)*
                })
            }
        }

        impl $crate::dynamic::CApi for $name {
            fn from_library(library: &libloading::Library) -> std::result::Result<Self, String> {
                $name::find(library, "")
            }
        }
    };
}
pub(crate) use c_api;
