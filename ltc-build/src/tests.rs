//! Fabricated installations in a temporary folder, each found or refused for the right reason.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A Python environment with a torch package, removed when dropped.
struct Environment(PathBuf);

impl Environment {
    fn empty() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ltc-build-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let environment = Environment(env::temp_dir().join(name));
        fs::create_dir_all(environment.torch()).unwrap();
        environment
    }

    fn with(version: &str) -> Self {
        let environment = Self::empty();
        environment.put("lib/libtorch_cpu.so", "").put("include/ATen/ATen.h", "");
        environment.put("version.py", &format!("__version__ = '{version}'\ndebug = False\n"));
        environment
    }

    fn torch(&self) -> PathBuf {
        self.0.join("lib/python3.12/site-packages/torch")
    }

    fn put(&self, file: &str, text: &str) -> &Self {
        let path = self.torch().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn in_environments(environments: &[&Environment]) -> Surroundings {
    Surroundings { environments: environments.iter().map(|e| e.0.clone()).collect(), ..Default::default() }
}

fn no_python() -> Option<PathBuf> {
    panic!("Python was asked")
}

#[test]
fn an_environment_with_the_right_version_is_found() {
    let env = Environment::with("2.11.0+cu130");
    let torch = in_environments(&[&env]).locate(no_python).unwrap();
    assert_eq!(torch.version, "2.11.0+cu130");
    assert_eq!(torch.lib(), env.torch().join("lib"));
    assert_eq!(torch.includes()[0], env.torch().join("include"));
    assert!(torch.cxx11_abi && !torch.has_cuda());
    env.put("lib/libtorch_cuda.so", "");
    assert!(torch.has_cuda());
}

#[test]
fn the_first_environment_with_torch_is_used() {
    let (none, first, second) = (Environment::empty(), Environment::with("2.11.0"), Environment::with("2.11.0"));
    let torch = in_environments(&[&none, &first, &second]).locate(no_python).unwrap();
    assert_eq!(torch.lib_root, first.torch());
}

#[test]
fn libtorch_comes_before_environments() {
    let (named, active) = (Environment::with("2.11.0"), Environment::with("2.11.0"));
    let here = Surroundings { libtorch: Some(named.torch()), ..in_environments(&[&active]) };
    assert_eq!(here.locate(no_python).unwrap().lib_root, named.torch());
}

#[test]
fn pytorch_comes_before_libtorch_when_asked_for() {
    let (named, active) = (Environment::with("2.11.0"), Environment::with("2.11.0"));
    let here = Surroundings { use_pytorch: true, libtorch: Some(named.torch()), ..in_environments(&[]) };
    assert_eq!(here.locate(|| Some(active.torch())).unwrap().lib_root, active.torch());
    let why = here.locate(|| None).unwrap_err();
    assert!(why.contains("active Python has no torch"), "{why}");
}

#[test]
fn headers_and_libraries_may_be_apart() {
    let (lib, include) = (Environment::with("2.11.0"), Environment::with("2.11.0"));
    let here = Surroundings {
        lib: Some(lib.torch()),
        include: Some(include.torch()),
        cxx11_abi: Some("0".into()),
        ..Default::default()
    };
    let torch = here.locate(no_python).unwrap();
    assert_eq!((torch.lib(), &torch.includes()[0]), (lib.torch().join("lib"), &include.torch().join("include")));
    assert!(!torch.cxx11_abi);
}

#[test]
fn the_version_is_read_from_archives_and_headers_too() {
    let env = Environment::empty();
    let version = || version_of(&env.torch());
    assert_eq!(version(), None);
    let header =
        "#pragma once\n#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n#define TORCH_VERSION_PATCH 0\n";
    env.put("include/torch/headeronly/version.h", header);
    assert_eq!(version().as_deref(), Some("2.11.0"));
    env.put("build-version", "2.11.0+cpu\n");
    assert_eq!(version().as_deref(), Some("2.11.0+cpu"));
    env.put("version.py", "__version__ = \"2.11.0+cu130\"\n");
    assert_eq!(version().as_deref(), Some("2.11.0+cu130"));
}

#[test]
fn a_wrong_version_says_what_to_do() {
    let env = Environment::with("2.10.1");
    for here in [in_environments(&[&env]), Surroundings { libtorch: Some(env.torch()), ..Default::default() }] {
        let why = here.locate(no_python).unwrap_err();
        assert!(why.contains("2.10.1") && why.contains("make setup") && why.contains("torch==2.13.0"), "{why}");
    }
}

#[test]
fn releases_from_the_first_minor_version_to_the_last_are_taken() {
    for taken in ["2.11.0", "2.12.1+cpu", "2.13.0", "2.15.0+cu130"] {
        let env = Environment::with(taken);
        assert_eq!(in_environments(&[&env]).locate(no_python).unwrap().version, taken);
    }
    for refused in ["2.10.0", "2.16.0", "3.13.0", "2.13.0a0+git123", "2.13", "2.13.0rc1", ""] {
        assert!(!is_supported(refused), "{refused}");
    }
}

#[test]
fn an_unknown_version_is_refused() {
    let env = Environment::with("2.11.0");
    fs::remove_file(env.torch().join("version.py")).unwrap();
    let why = in_environments(&[&env]).locate(no_python).unwrap_err();
    assert!(why.contains("of unknown version"), "{why}");
}

/// `tch` looks nowhere else once `LIBTORCH` is set, so neither may we.
#[test]
fn an_empty_libtorch_is_an_error_that_names_the_alternative() {
    let (empty, active) = (Environment::empty(), Environment::with("2.11.0"));
    let here = Surroundings { libtorch: Some(empty.torch()), ..in_environments(&[&active]) };
    let why = here.locate(no_python).unwrap_err();
    let other = active.torch().display().to_string();
    assert!(why.contains("LIBTORCH_USE_PYTORCH=1") && why.contains("make setup") && why.contains(&other), "{why}");
}

#[test]
fn nothing_found_says_what_to_do() {
    let why = in_environments(&[]).locate(no_python).unwrap_err();
    assert!(why.contains("was not found") && why.contains("make setup"), "{why}");
}

#[test]
fn sanitizers_are_asked_for_by_name() {
    assert_eq!(flags_of(""), [""; 0]);
    assert_eq!(runtimes_of(""), [""; 0]);
    assert_eq!(flags_of("address,undefined")[0], "-fsanitize=address,undefined");
    assert_eq!(runtimes_of("address,undefined")[1..], ["-lasan", "-lubsan"]);
}
