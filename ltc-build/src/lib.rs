//! Finds libtorch for the build scripts of the workspace, and says what to do when it is not there.
//!
//! `tch` compiles against a libtorch that its own build script picks, and one process can hold only one libtorch: so
//! this crate picks as `tch` does, and is stricter about the version. The first of these that is set decides:
//!
//! 1. `LIBTORCH_USE_PYTORCH`: the torch package of the active Python environment;
//! 2. `LIBTORCH`, a folder with `lib` and `include` (`LIBTORCH_LIB` and `LIBTORCH_INCLUDE` replace it for one of the
//!    two). In this checkout `.cargo/config.toml` sets it to `.venv/libtorch`, which `make setup` links;
//! 3. `VIRTUAL_ENV`, then `CONDA_PREFIX`, then the `.venv` of the workspace.
//!
//! Leaf crates (binaries, tests, examples) call [`link_args`] so that they run with no `LD_LIBRARY_PATH`.
#![expect(clippy::print_stdout, reason = "build scripts talk to cargo on stdout")]

use std::{
    env,
    ffi::OsString,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::Command,
};

#[cfg(test)]
mod tests;

/// The libtorch that `make setup` installs, and the only one that `tch` of this workspace's version takes.
pub const VERSION: &str = "2.13.0";

/// First and last minor version of libtorch 2 that everything but `tch` compiles against.
const MINORS: RangeInclusive<u32> = 11..=15;

/// Whether a version is a release that LTC can be built for: `2.13.0+cpu` is, `2.13.0a0+git` is none.
fn is_supported(version: &str) -> bool {
    let release = version.split('+').next().unwrap_or_default();
    let parts: Option<Vec<u32>> = release.split('.').map(|part| part.parse().ok()).collect();
    matches!(parts.as_deref(), Some([2, minor, _]) if MINORS.contains(minor))
}

/// Variables that decide which libtorch is used.
const DECIDING: [&str; 5] =
    ["LIBTORCH", "LIBTORCH_LIB", "LIBTORCH_INCLUDE", "LIBTORCH_CXX11_ABI", "LIBTORCH_USE_PYTORCH"];

/// Variables that name an active Python environment.
const ACTIVE: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// A libtorch installation of the right version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// Parent of `lib`.
    lib_root: PathBuf,
    /// Parent of `include`.
    include_root: PathBuf,
    /// Version, with local part: `2.11.0+cu130`.
    pub version: String,
    /// Whether it is compiled with the C++11 ABI of libstdc++.
    pub cxx11_abi: bool,
}

impl Libtorch {
    /// Folder of the shared libraries.
    pub fn lib(&self) -> PathBuf {
        self.lib_root.join("lib")
    }

    /// Folders to search for headers.
    pub fn includes(&self) -> [PathBuf; 2] {
        ["include", "include/torch/csrc/api/include"].map(|dir| self.include_root.join(dir))
    }

    /// Whether CUDA libraries are part of it.
    pub fn has_cuda(&self) -> bool {
        self.lib().join("libtorch_cuda.so").exists()
    }

    /// The installation at `lib_root` and `include_root`; none when libraries or headers are not there.
    fn at(lib_root: PathBuf, include_root: PathBuf, cxx11_abi: bool) -> Option<Self> {
        let there = library(&lib_root) && include_root.join("include/ATen/ATen.h").exists();
        there.then(|| {
            let version = version_of(&lib_root).or_else(|| version_of(&include_root));
            Libtorch {
                version: version.unwrap_or_else(|| "of unknown version".into()),
                lib_root,
                include_root,
                cxx11_abi,
            }
        })
    }

    fn checked(self) -> Result<Self, String> {
        if is_supported(&self.version) {
            return Ok(self);
        }
        Err(format!(
            "libtorch {} in {} cannot be used: LTC is written for releases 2.{} to 2.{}, because libtorch's C++ \
             interface changes between versions.\nInstall torch=={VERSION} there, or run `make setup`, or set \
             LIBTORCH to a libtorch {VERSION}.",
            self.version,
            self.lib_root.display(),
            MINORS.start(),
            MINORS.end()
        ))
    }
}

/// What the choice depends on.
#[derive(Debug, Default)]
struct Surroundings {
    use_pytorch: bool,
    libtorch: Option<PathBuf>,
    lib: Option<PathBuf>,
    include: Option<PathBuf>,
    cxx11_abi: Option<OsString>,
    /// Folders of Python environments, best first.
    environments: Vec<PathBuf>,
}

impl Surroundings {
    fn read() -> Self {
        let var = |name| env::var_os(name).map(PathBuf::from);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".venv");
        Surroundings {
            use_pytorch: env::var_os("LIBTORCH_USE_PYTORCH").is_some(),
            libtorch: var("LIBTORCH"),
            lib: var("LIBTORCH_LIB"),
            include: var("LIBTORCH_INCLUDE"),
            cxx11_abi: env::var_os("LIBTORCH_CXX11_ABI"),
            environments: ACTIVE.into_iter().filter_map(var).chain([workspace]).collect(),
        }
    }

    /// `python_torch` asks the active interpreter where its torch package is.
    fn locate(&self, python_torch: impl FnOnce() -> Option<PathBuf>) -> Result<Libtorch, String> {
        if self.use_pytorch {
            return python_torch()
                .and_then(|root| Libtorch::at(root.clone(), root, true))
                .ok_or_else(|| {
                    format!("LIBTORCH_USE_PYTORCH is set but the active Python has no torch.\n{}", advice())
                })?
                .checked();
        }
        if self.libtorch.is_some() || (self.lib.is_some() && self.include.is_some()) {
            return self.named()?.checked();
        }
        self.in_environments().ok_or_else(|| format!("libtorch {VERSION} was not found.\n{}", advice()))?.checked()
    }

    /// The libtorch that `LIBTORCH` and its companions name.
    fn named(&self) -> Result<Libtorch, String> {
        let root = |own: &Option<PathBuf>| own.clone().or_else(|| self.libtorch.clone()).unwrap_or_default();
        let (lib, include) = (root(&self.lib), root(&self.include));
        let abi = self.cxx11_abi.as_ref().is_none_or(|v| v != "0");
        Libtorch::at(lib.clone(), include, abi).ok_or_else(|| {
            let mut why = format!("there is no libtorch in {} (LIBTORCH).\n{}", lib.display(), advice());
            if let Some(other) = self.in_environments().and_then(|t| t.checked().ok()) {
                why += &format!("\nOne is in {}: LIBTORCH_USE_PYTORCH=1 uses it.", other.lib_root.display());
            }
            why
        })
    }

    fn in_environments(&self) -> Option<Libtorch> {
        let roots = self.environments.iter().flat_map(|e| site_packages(e));
        roots.into_iter().find_map(|root| Libtorch::at(root.clone(), root, true))
    }
}

fn advice() -> String {
    format!(
        "Run `make setup`, which installs torch=={VERSION} into .venv; or set LIBTORCH to the folder of a libtorch \
         {VERSION}; or set LIBTORCH_USE_PYTORCH=1 in an active environment that has torch=={VERSION}."
    )
}

/// Finds libtorch as the documentation of this crate says, or tells what to do.
///
/// # Errors
/// If there is none where it was looked for, or it is of a version that is not supported: says so, and what to install
/// or set.
pub fn locate() -> Result<Libtorch, String> {
    Surroundings::read().locate(python_torch)
}

/// Asks the interpreter that `tch` would ask, without the cost of importing torch.
fn python_torch() -> Option<PathBuf> {
    const WHERE: &str = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])";
    let python = if env::var_os("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
    let out = Command::new(python).args(["-c", WHERE]).output().ok().filter(|out| out.status.success())?;
    Some(PathBuf::from(String::from_utf8(out.stdout).ok()?.trim()))
}

fn library(root: &Path) -> bool {
    ["so", "dylib"].iter().any(|extension| root.join("lib/libtorch_cpu").with_extension(extension).exists())
}

fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let lib = fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let mut roots: Vec<PathBuf> =
        lib.map(|e| e.path().join("site-packages/torch")).filter(|torch| torch.is_dir()).collect();
    roots.sort();
    roots
}

/// From the Python package, a libtorch archive, or the headers.
fn version_of(root: &Path) -> Option<String> {
    let read = |file: &str| fs::read_to_string(root.join(file)).ok();
    if let Some(text) = read("version.py") {
        let line = text.lines().find(|l| l.starts_with("__version__"))?;
        return line.split(['\'', '"']).nth(1).map(str::to_owned);
    }
    if let Some(text) = read("build-version") {
        return Some(text.trim().to_owned());
    }
    let text = read("include/torch/headeronly/version.h").or_else(|| read("include/torch/version.h"))?;
    let part = |name: &str| {
        let definition = format!("#define TORCH_VERSION_{name} ");
        text.lines().find_map(|l| l.strip_prefix(&definition)).map(str::trim)
    };
    Some([part("MAJOR")?, part("MINOR")?, part("PATCH")?].join("."))
}

/// Whether this is a build of docs.rs, which has no libtorch: rustdoc links nothing, so nothing has to be found.
pub fn is_documenting() -> bool {
    println!("cargo:rerun-if-env-changed={DOCS_RS}");
    env::var_os(DOCS_RS).is_some()
}

/// What docs.rs sets.
const DOCS_RS: &str = "DOCS_RS";

/// For the build script of a leaf crate, in this workspace or outside of it: lets its binaries find libtorch when they
/// run. Says what is wrong and stops the build when there is no usable libtorch.
///
/// libtorch's own libraries carry the way to each other and to CUDA's, so one folder is enough.
pub fn link_args() {
    rerun();
    if is_documenting() {
        return;
    }
    let torch = locate().unwrap_or_else(|why| fail(&why));
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", torch.lib().display());
    for flag in runtimes_of(&env::var(SANITIZE).unwrap_or_default()) {
        println!("cargo:rustc-link-arg={flag}");
    }
}

/// The variable that names sanitizers of the C++ compiler, such as `address,undefined` (`make sanitize`).
const SANITIZE: &str = "LTC_SANITIZE";

/// What to compile C++ with for the sanitizers that are asked for; nothing when there are none. Of libtorch's classes
/// there is no type information to compare with, so casts between them are not checked.
pub fn sanitizer_flags() -> Vec<String> {
    flags_of(&env::var(SANITIZE).unwrap_or_default())
}

fn flags_of(sanitizers: &str) -> Vec<String> {
    if sanitizers.is_empty() {
        return Vec::new();
    }
    let flag = format!("-fsanitize={sanitizers}");
    [&flag, "-fno-sanitize=vptr", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]
        .map(str::to_owned)
        .into()
}

/// Their run-time libraries, by name: rustc links without those that the C++ compiler would add. `thread` has rustc's
/// own (`-Zsanitizer=thread`): threads are Rust's, so races are seen only where Rust is instrumented, too.
fn runtimes_of(sanitizers: &str) -> Vec<String> {
    let library = |name: &str| match name {
        "address" => Some("-lasan"),
        "undefined" => Some("-lubsan"),
        _ => None,
    };
    let libraries = sanitizers.split(',').filter_map(library).map(str::to_owned);
    if sanitizers.is_empty() {
        Vec::new()
    } else {
        ["-Wl,--no-as-needed".to_owned()].into_iter().chain(libraries).collect()
    }
}

/// Tells cargo what the answer of [`locate`] depends on.
pub fn rerun() {
    let here = Surroundings::read();
    // Activating an environment that decides nothing must not rebuild anything.
    let active: &[&str] = if here.use_pytorch || here.libtorch.is_none() { &ACTIVE } else { &[] };
    for name in DECIDING.iter().chain(active) {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-env-changed={SANITIZE}");
    println!("cargo:rerun-if-changed=build.rs");
    // Another torch in the same place.
    if let Ok(torch) = locate() {
        let version = torch.lib_root.join("version.py");
        if version.exists() {
            println!("cargo:rerun-if-changed={}", version.display());
        }
    }
}

/// Stops a build script with a message that cargo shows as an error of the crate.
pub fn fail(why: &str) -> ! {
    for line in why.lines() {
        println!("cargo::error={line}");
    }
    std::process::exit(0)
}
