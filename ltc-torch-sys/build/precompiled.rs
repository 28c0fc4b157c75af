//! The headers of libtorch, read once for all files: that takes longer than to compile what most files say themselves.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
};

/// What most files include.
const HEADERS: &str = "#include <ATen/ATen.h>\n#include <torch/csrc/autograd/function.h>\n#include <torch/library.h>\n";

/// With more compilers at a time than about these, all files are done sooner without: one compiler reads the headers,
/// as long as it takes for two files, while the others wait.
const JOBS: usize = 8;

/// Programs that keep what compilers made, by what these read; of precompiled headers they do not know that.
const CACHES: [&str; 2] = ["ccache", "sccache"];

/// Headers that are compiled, in a folder that is removed with this: they take half a gigabyte.
pub(crate) struct Precompiled(PathBuf);

impl Precompiled {
    /// Compiles the headers in `out`, and has each file of the build begin with them. `None` where the compiler cannot
    /// or would not gain by it; the files are compiled as they are then, and mean the same.
    pub(crate) fn begin(build: &mut cc::Build, out: &Path) -> Option<Self> {
        let compiler = build.get_compiler();
        let mut command = compiler.to_command();
        let program = Path::new(command.get_program()).file_stem()?.to_str()?;
        let jobs: usize = env::var("NUM_JOBS").ok()?.parse().ok()?;
        if jobs > JOBS || CACHES.contains(&program) || !(compiler.is_like_gnu() || compiler.is_like_clang()) {
            return None;
        }
        let (folder, header) = Self::write(out).ok()?;
        // Both compilers look for a file of this name beside a header that they are told to include first.
        command.args(["-x", "c++-header"]).arg(&header).arg("-o").arg(header.with_extension("h.gch"));
        let made = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        build.flag("-include").flag(header.display().to_string());
        Some(folder)
    }

    /// Writes the header that includes the others.
    fn write(out: &Path) -> io::Result<(Self, PathBuf)> {
        let folder = Self(out.join("precompiled"));
        fs::create_dir_all(&folder.0)?;
        let header = folder.0.join("libtorch.h");
        fs::write(&header, HEADERS)?;
        Ok((folder, header))
    }
}

impl Drop for Precompiled {
    fn drop(&mut self) {
        // What is left there is only larger than need be.
        let _ = fs::remove_dir_all(&self.0);
    }
}
