//! Compiles the C++ once for all profiles and features of a target folder: the compilation takes minutes, and its
//! result does not depend on profile or features.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use crate::precompiled::Precompiled;

/// How many archives are kept; each has some megabytes.
const KEPT: usize = 8;

/// Compiles a build to a library of this name, unless an equal build was compiled before, and tells cargo to link it.
pub(crate) fn compile(build: &cc::Build, library: &str, torch: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // `out` is `target/debug/build/ltc-torch-sys-1a2b/out`, or the same of another profile; this is its `target`.
    let kept = out.ancestors().nth(4).map(|target| target.join("ltc-torch-sys"));
    let kept = kept.and_then(|folder| Some((folder.join(name(build, library, torch).ok()?), folder)));
    let made = out.join(format!("lib{library}.a"));
    let is_there = kept.as_ref().is_some_and(|(archive, _)| fs::copy(archive, &made).is_ok());
    if !is_there {
        let mut build = build.clone();
        let headers = (build.get_files().count() > 1).then(|| Precompiled::begin(&mut build, &out));
        build.compile(library);
        drop(headers);
        if let Some((archive, folder)) = kept {
            // A kept archive only makes later builds faster, so a failure to keep it is no error.
            let _ = keep(&made, &archive, &folder);
        }
        return;
    }
    // Without a call of `cc::Build::compile`, its lines for cargo have to be printed here.
    let of_apple = env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple");
    let standard = env::var("CXXSTDLIB").unwrap_or_else(|_| if of_apple { "c++" } else { "stdc++" }.to_owned());
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static={library}");
    println!("cargo:rustc-link-lib={standard}");
}

/// The file name of an archive. It has a hash of the compiler and its version, the flags, libtorch, and all C++
/// sources, so that an archive is found again only for a build in which none of them has changed.
fn name(build: &cc::Build, library: &str, torch: &str) -> io::Result<String> {
    let compiler = build.get_compiler();
    let version = Command::new(compiler.path()).arg("--version").output()?.stdout;
    let mut texts = Vec::new();
    read(Path::new("csrc"), &mut texts)?;
    texts.sort();
    let mut hasher = DefaultHasher::new();
    (compiler.path(), compiler.args(), version, torch, texts).hash(&mut hasher);
    build.get_files().for_each(|file| file.hash(&mut hasher));
    Ok(format!("{library}-{:016x}.a", hasher.finish()))
}

/// Reads the paths and contents of all files under a folder.
fn read(folder: &Path, texts: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, texts)?;
        } else {
            texts.push((path.clone(), fs::read(&path)?));
        }
    }
    Ok(())
}

/// Keeps an archive for later builds. It is copied under a temporary name and then renamed, so that another build never
/// finds half of it. Only the [`KEPT`] newest archives stay.
fn keep(from: &Path, archive: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let part = archive.with_extension(std::process::id().to_string());
    fs::copy(from, &part)?;
    fs::rename(&part, archive)?;
    let mut all: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        all.push((entry.metadata()?.modified()?, entry.path()));
    }
    all.sort();
    let old = all.len().saturating_sub(KEPT);
    all[..old].iter().try_for_each(|(_, path)| fs::remove_file(path))
}
