//! Twins of kernels: their text, compiled for the host and run there.

use std::{
    ffi::{CStr, CString, c_char, c_uint, c_void},
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use libloading::Library;
use parking_lot::Mutex;

use super::super::{Launch, Launches, Operands, Source, program};

/// What the host needs to be able to launch kernels by their names.
fn with_entries(text: &str, sources: &[Source]) -> String {
    let entry = |name: &str| format!("  {{\"{name}\", [](void** args) {{ twin::call(ltc::{name}, args); }}}},\n");
    let mut names: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let entries: String = names.into_iter().map(entry).collect();
    format!(
        "#include \"host_cuda.h\"\n{text}\nstruct Entry {{ const char* name; void (*run)(void**); }};\n\
         static const Entry entries[] = {{\n{entries}}};\n\
         extern \"C\" const char* twin_launch(const char* name, unsigned grid, unsigned block, unsigned seed, \
         void** args) {{\n\
           for (const Entry& entry : entries)\n\
             if (!strcmp(entry.name, name)) return twin::launch(grid, block, seed, [&] {{ entry.run(args); }});\n\
           return \"no such kernel\";\n}}\n"
    )
}

type TwinLaunch = unsafe extern "C" fn(*const c_char, c_uint, c_uint, c_uint, *mut *mut c_void) -> *const c_char;

/// A library of twins. They share their blocks' memory, so one runs at a time.
pub(super) struct Twin {
    launch: Mutex<TwinLaunch>,
    /// Has the code.
    _library: Library,
}

impl Twin {
    /// The twins of these kernels; `None` where the host has no C++ compiler, after saying so.
    pub(super) fn of(sources: &[Source]) -> Option<Twin> {
        Twin::of_text(&program(sources), sources)
    }

    /// The same of a text with these kernels.
    pub(super) fn of_text(text: &str, sources: &[Source]) -> Option<Twin> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        if Command::new(&compiler).arg("--version").output().is_err() {
            eprintln!("there is no C++ compiler {compiler}: twins are not compared");
            return None;
        }
        let name = format!("ltc-twin-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let (text_path, library_path) = (folder.join("kernels.cpp"), folder.join("kernels.so"));
        std::fs::write(&text_path, with_entries(text, sources)).expect("a file is written");
        let here = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cuda/tests"));
        let mut command = Command::new(&compiler);
        command.args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing"]);
        command.args(["-fno-gnu-unique", "-Wl,-Bsymbolic"]);
        if cfg!(target_arch = "x86_64") {
            command.arg("-mfma");
        }
        let done = command.arg("-I").arg(here).arg(&text_path).arg("-o").arg(&library_path).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // SAFETY: the library has no code that runs when it is loaded but the standard library's.
        let library = unsafe { Library::new(&library_path) }.expect("the library that was just made");
        std::fs::remove_dir_all(&folder).expect("the folder that was just made");
        // SAFETY: the function has this type in `with_entries`.
        let launch = *unsafe { library.get::<TwinLaunch>(b"twin_launch\0") }.expect("the function that was written");
        Some(Twin { launch: Mutex::new(launch), _library: library })
    }

    /// Runs a kernel; the seed picks the order of blocks and warps.
    ///
    /// # Safety
    /// Operands have the elements the kernel reads and writes.
    unsafe fn launch(&self, launch: &Launch, operands: Operands<'_>, seed: u32) -> Result<(), String> {
        let name = CString::new(launch.source.name.as_str()).expect("a name");
        let mut values = launch.arguments(operands);
        let mut args: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let run = self.launch.lock();
        // SAFETY: there is an argument of eight bytes for each parameter; the rest is by this function's contract.
        let failure = unsafe { run(name.as_ptr(), launch.grid, launch.block, seed, args.as_mut_ptr()) };
        if failure.is_null() {
            return Ok(());
        }
        // SAFETY: the twin gives a text that stays.
        Err(unsafe { CStr::from_ptr(failure) }.to_string_lossy().into_owned())
    }

    /// Runs a kernel's launches on these outputs and inputs; its scratch memory begins as bits of NaN.
    ///
    /// # Safety
    /// As [`Twin::launch`].
    pub(super) unsafe fn run(
        &self,
        launches: &Launches,
        (to, from): (&[*mut u8], &[*const u8]),
        numbers: &[u64],
        order: u32,
    ) -> Result<(), String> {
        let outputs: Vec<u64> = to.iter().map(|p| *p as u64).collect();
        let inputs: Vec<u64> = from.iter().map(|p| *p as u64).collect();
        let mut scratch = vec![u64::MAX; launches.scratch_bytes / 8];
        let scratch = scratch.as_mut_ptr() as u64;
        let operands = Operands { outputs: &outputs, inputs: &inputs, numbers, scratch };
        // SAFETY: by this function's contract.
        launches.each.iter().try_for_each(|launch| unsafe { self.launch(launch, operands, order) })
    }
}
