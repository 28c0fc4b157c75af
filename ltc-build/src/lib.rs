//! Finds libtorch for the build scripts of the workspace, and says what to do when it is not there.
//!
//! Places, in order: `LIBTORCH` (a folder with `lib` and `include`), the active Python environment (`VIRTUAL_ENV`,
//! `CONDA_PREFIX`), the workspace's own `.venv`. With `LIBTORCH_USE_PYTORCH` set the active environment comes first, as
//! for `tch` itself. Leaf crates (binaries, tests, examples, extension modules) call
//! [`link_args`] so that they run with no `LD_LIBRARY_PATH`.
#![expect(clippy::print_stdout, reason = "build scripts talk to cargo on stdout")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The libtorch this workspace is written for.
pub const VERSION: &str = "2.11.0";

/// A libtorch installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// Folder with `lib` and `include`.
    pub root: PathBuf,
    /// Version, with local part: `2.11.0+cu130`.
    pub version: String,
}

impl Libtorch {
    /// Folder of the shared libraries.
    pub fn lib(&self) -> PathBuf {
        self.root.join("lib")
    }

    /// Folders to search for headers.
    pub fn includes(&self) -> [PathBuf; 2] {
        [self.root.join("include"), self.root.join("include/torch/csrc/api/include")]
    }

    /// Whether CUDA libraries are part of it.
    pub fn has_cuda(&self) -> bool {
        self.lib().join("libtorch_cuda.so").exists()
    }
}

/// Finds libtorch in the places of the module documentation.
pub fn locate() -> Result<Libtorch, String> {
    let var = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default();
    search(
        var("LIBTORCH"),
        [var("VIRTUAL_ENV"), var("CONDA_PREFIX"), Some(workspace.join(".venv"))].into_iter().flatten(),
    )
}

/// [`locate`] with its surroundings given.
pub fn search(libtorch: Option<PathBuf>, environments: impl Iterator<Item = PathBuf>) -> Result<Libtorch, String> {
    let mut looked = Vec::new();
    let in_environments = environments.flat_map(|e| site_packages(&e));
    for root in libtorch.into_iter().chain(in_environments) {
        if root.join("lib/libtorch_cpu.so").exists() && root.join("include/ATen/ATen.h").exists() {
            let found = Libtorch { version: version_of(&root).unwrap_or_else(|| "unknown".into()), root };
            return check_version(found);
        }
        looked.push(root);
    }
    Err(format!(
        "libtorch {VERSION} was not found (looked in: {}).\nRun `make setup`, which installs torch=={VERSION} into .venv, \
         or activate an environment that has it, or set LIBTORCH to its folder.",
        if looked.is_empty() {
            "no environment".into()
        } else {
            looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
        }
    ))
}

fn check_version(found: Libtorch) -> Result<Libtorch, String> {
    if found.version.split('+').next() == Some(VERSION) {
        return Ok(found);
    }
    Err(format!(
        "libtorch {} in {} cannot be used: LTC is bound to {VERSION} exactly, because libtorch's C++ interface changes \
         between versions.\nInstall torch=={VERSION} there, or run `make setup`, or set LIBTORCH to a libtorch {VERSION}.",
        found.version,
        found.root.display()
    ))
}

fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = fs::read_dir(environment.join("lib"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("site-packages/torch"))
        .filter(|p| p.is_dir())
        .collect();
    roots.sort();
    roots
}

fn version_of(root: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(root.join("version.py")) {
        let line = text.lines().find(|l| l.starts_with("__version__"))?;
        return line.split('\'').nth(1).or_else(|| line.split('"').nth(1)).map(str::to_owned);
    }
    fs::read_to_string(root.join("build-version")).ok().map(|v| v.trim().to_owned())
}

/// For the build script of a leaf crate: lets its binaries find libtorch when they run. Says what is wrong and stops the
/// build when there is no usable libtorch.
pub fn link_args() {
    rerun();
    match locate() {
        Ok(torch) => println!("cargo:rustc-link-arg=-Wl,-rpath,{}", torch.lib().display()),
        Err(why) => fail(&why),
    }
}

/// Tells cargo what the answer of [`locate`] depends on.
pub fn rerun() {
    for name in ["LIBTORCH", "LIBTORCH_USE_PYTORCH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}

/// Stops a build script with a message.
pub fn fail(why: &str) -> ! {
    for line in why.lines() {
        println!("cargo:warning={line}");
    }
    #[expect(clippy::print_stderr, reason = "the end of a failed build script")]
    {
        eprintln!("error: {why}");
    }
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, version: &str) -> PathBuf {
        let env = env::temp_dir().join(format!("ltc-build-{name}-{}", std::process::id()));
        let root = env.join("lib/python3.12/site-packages/torch");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::create_dir_all(root.join("include/ATen")).unwrap();
        fs::write(root.join("lib/libtorch_cpu.so"), "").unwrap();
        fs::write(root.join("include/ATen/ATen.h"), "").unwrap();
        fs::write(root.join("version.py"), format!("__version__ = '{version}'\ndebug = False\n")).unwrap();
        env
    }

    #[test]
    fn an_environment_with_the_right_version_is_found() {
        let env = tree("right", "2.11.0+cu130");
        let torch = search(None, std::iter::once(env.clone())).unwrap();
        assert_eq!(torch.version, "2.11.0+cu130");
        assert!(torch.lib().ends_with("torch/lib") && !torch.has_cuda());
        fs::remove_dir_all(env).unwrap();
    }

    #[test]
    fn libtorch_comes_before_environments() {
        let (a, b) = (tree("first", "2.11.0"), tree("second", "2.11.0"));
        let root = a.join("lib/python3.12/site-packages/torch");
        assert_eq!(search(Some(root.clone()), std::iter::once(b.clone())).unwrap().root, root);
        fs::remove_dir_all(a).unwrap();
        fs::remove_dir_all(b).unwrap();
    }

    #[test]
    fn a_wrong_version_says_what_to_do() {
        let env = tree("wrong", "2.10.1");
        let why = search(None, std::iter::once(env.clone())).unwrap_err();
        assert!(why.contains("2.10.1") && why.contains("make setup") && why.contains("torch==2.11.0"), "{why}");
        fs::remove_dir_all(env).unwrap();
    }

    #[test]
    fn nothing_found_says_what_to_do() {
        let why = search(Some("/nowhere".into()), std::iter::empty()).unwrap_err();
        assert!(why.contains("/nowhere") && why.contains("make setup"), "{why}");
    }
}
