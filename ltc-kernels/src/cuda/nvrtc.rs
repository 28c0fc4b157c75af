//! NVRTC: NVIDIA's compiler as a library. It is opened where it is there, needs no driver, and is never linked.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::{Path, PathBuf},
};

use libloading::Library;

use super::library::{LibraryError, functions};

/// A program of NVRTC's.
type Program = *mut c_void;

/// Names of the library, newest first. The loader finds them where the system has CUDA.
const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

/// What the text relies on: no products fused with sums, no flushing of small numbers, exact quotients and roots. So
/// the same bits as on the host.
const OPTIONS: [&CStr; 7] = [
    c"--std=c++17",
    c"--fmad=false",
    c"--ftz=false",
    c"--prec-div=true",
    c"--prec-sqrt=true",
    c"--device-as-default-execution-space",
    c"--disable-warnings",
];

functions! {
    version nvrtcVersion(*mut c_int, *mut c_int) -> c_int;
    error_name nvrtcGetErrorString(c_int) -> *const c_char;
    create nvrtcCreateProgram(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> c_int;
    destroy nvrtcDestroyProgram(*mut Program) -> c_int;
    compile nvrtcCompileProgram(Program, c_int, *const *const c_char) -> c_int;
    log_size nvrtcGetProgramLogSize(Program, *mut usize) -> c_int;
    log nvrtcGetProgramLog(Program, *mut c_char) -> c_int;
    code_size nvrtcGetCUBINSize(Program, *mut usize) -> c_int;
    code nvrtcGetCUBIN(Program, *mut c_char) -> c_int;
    ptx_size nvrtcGetPTXSize(Program, *mut usize) -> c_int;
    ptx nvrtcGetPTX(Program, *mut c_char) -> c_int;
}

/// What a GPU can do: compute capability 8.6 is `Arch { major: 8, minor: 6 }`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the words are NVIDIA's")]
pub struct Arch {
    pub major: u32,
    pub minor: u32,
}

impl std::fmt::Display for Arch {
    /// As compilers name it: `sm_86`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// The compiler, opened.
pub struct Nvrtc {
    functions: Functions,
    version: (i32, i32),
    /// Libraries whose code is used; closed last.
    _libraries: Vec<Library>,
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Nvrtc {
    /// Opens NVRTC from the first of these folders that has it, or from where the system's loader finds it. NVIDIA's
    /// Python packages have it beside torch: for CUDA 13 in nvidia/cu13/lib, before in nvidia/cuda_nvrtc/lib.
    ///
    /// # Errors
    /// If there is none, or it lacks a function.
    pub fn open(folders: &[PathBuf]) -> Result<Nvrtc, LibraryError> {
        let mut reasons = Vec::new();
        for name in NAMES {
            let within = folders.iter().map(|folder| folder.join(name)).filter(|path| path.exists());
            for path in within.chain([PathBuf::from(name)]) {
                match Nvrtc::open_at(&path) {
                    Err(LibraryError::Missing(reason)) => reasons.push(reason),
                    other => return other,
                }
            }
        }
        Err(LibraryError::Missing(reasons.join("; ")))
    }

    fn open_at(path: &Path) -> Result<Nvrtc, LibraryError> {
        let missing = |e: libloading::Error| LibraryError::Missing(e.to_string());
        // SAFETY: NVIDIA's libraries do nothing when they are loaded.
        let open = |path: &Path| unsafe { Library::new(path) }.map_err(missing);
        // NVRTC opens this one by its name alone, and finds it where it was loaded before.
        let mut libraries = builtins(path).iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
        let library = open(path)?;
        // SAFETY: the file has NVRTC's name; these are the types of its header.
        let functions = unsafe { Functions::open(&library)? };
        libraries.insert(0, library);
        let mut nvrtc = Nvrtc { functions, version: (0, 0), _libraries: libraries };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are there to be written.
        let code = unsafe { (nvrtc.functions.version)(&raw mut major, &raw mut minor) };
        nvrtc.check("nvrtcVersion", code)?;
        nvrtc.version = (major, minor);
        Ok(nvrtc)
    }

    /// The compiler's version: major and minor.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Machine code (a cubin) of a program's text, which [`program`](super::program) makes, for GPUs of this kind.
    ///
    /// # Errors
    /// If the text does not compile, with the compiler's log; if a call fails.
    pub fn machine_code(&self, text: &str, arch: Arch) -> Result<Vec<u8>, LibraryError> {
        let program = self.compiled(text, &[&format!("--gpu-architecture={arch}")])?;
        program.read("nvrtcGetCUBIN", self.functions.code_size, self.functions.code)
    }

    /// What the assembler says of registers and of memory that values are spilled to.
    #[cfg(test)]
    pub(super) fn resources(&self, text: &str, arch: Arch) -> Result<String, LibraryError> {
        self.compiled(text, &[&format!("--gpu-architecture={arch}"), "--ptxas-options=-v"])?.log()
    }

    /// Code for a virtual GPU of this kind (PTX), which drivers make machine code of for all later kinds.
    ///
    /// # Errors
    /// As [`Nvrtc::machine_code`].
    pub fn portable_code(&self, text: &str, arch: Arch) -> Result<Vec<u8>, LibraryError> {
        let program = self.compiled(text, &[&format!("--gpu-architecture=compute_{}{}", arch.major, arch.minor)])?;
        program.read("nvrtcGetPTX", self.functions.ptx_size, self.functions.ptx)
    }

    fn compiled(&self, text: &str, more: &[&str]) -> Result<OwnedProgram<'_>, LibraryError> {
        let text = CString::new(text)?;
        let more = more.iter().map(|option| CString::new(*option)).collect::<Result<Vec<_>, _>>()?;
        let mut program = OwnedProgram { nvrtc: self, raw: std::ptr::null_mut() };
        let none = std::ptr::null();
        // SAFETY: the text ends with a zero byte, and there are no headers.
        let code = unsafe {
            (self.functions.create)(&raw mut program.raw, text.as_ptr(), c"kernels.cu".as_ptr(), 0, none, none)
        };
        self.check("nvrtcCreateProgram", code)?;
        let all = OPTIONS.into_iter().chain(more.iter().map(CString::as_c_str));
        let options: Vec<*const c_char> = all.map(CStr::as_ptr).collect();
        // SAFETY: there are as many options as said, each of which ends with a zero byte.
        let code = unsafe { (self.functions.compile)(program.raw, options.len() as c_int, options.as_ptr()) };
        // NVRTC_ERROR_COMPILATION
        if code == 6 {
            return Err(LibraryError::Rejected { log: program.log()? });
        }
        self.check("nvrtcCompileProgram", code)?;
        Ok(program)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), LibraryError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC gives a text that stays for each number, also for unknown ones.
        let name = unsafe { CStr::from_ptr((self.functions.error_name)(code)) };
        Err(LibraryError::Call { call, code, name: name.to_string_lossy().into_owned() })
    }
}

/// The libraries of what NVRTC builds in, beside this one.
fn builtins(nvrtc: &Path) -> Vec<PathBuf> {
    let entries = nvrtc.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_one = |name: &str| name.starts_with("libnvrtc-builtins.so.");
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.file_name().is_some_and(|name| is_one(&name.to_string_lossy()))).collect()
}

/// A program, destroyed when it is dropped.
struct OwnedProgram<'a> {
    nvrtc: &'a Nvrtc,
    raw: Program,
}

impl OwnedProgram<'_> {
    fn log(&self) -> Result<String, LibraryError> {
        let functions = &self.nvrtc.functions;
        let log = self.read("nvrtcGetProgramLog", functions.log_size, functions.log)?;
        Ok(String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned())
    }

    /// What a pair of functions gives: its size, then its bytes.
    fn read(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        bytes: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, LibraryError> {
        let mut count = 0;
        // SAFETY: the program is there, and the size to be written.
        self.nvrtc.check(call, unsafe { size(self.raw, &raw mut count) })?;
        let mut content = vec![0u8; count];
        // SAFETY: there is room for as many bytes as the program has.
        self.nvrtc.check(call, unsafe { bytes(self.raw, content.as_mut_ptr().cast()) })?;
        Ok(content)
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the program was created and is used by nobody else. There is nobody to tell of an error.
            _ = unsafe { (self.nvrtc.functions.destroy)(&raw mut self.raw) };
        }
    }
}
