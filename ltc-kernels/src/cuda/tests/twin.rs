//! Twins of kernels: their text, compiled for the host and run there.

use std::{
    ffi::c_uint,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use libloading::Library;
use parking_lot::Mutex;

use super::super::{Arch, Driver, Launch, Launches, LibraryError, Module, Operands, Source, program};

/// The text with what makes it a driver, whose only module has these kernels.
fn with_driver(text: &str, sources: &[Source]) -> String {
    let entry = |name: &str| format!("    {{\"{name}\", [](void** args) {{ twin::call(ltc::{name}, args); }}}},\n");
    let mut names: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let entries: String = names.into_iter().map(entry).collect();
    let driver = include_str!("driver.h");
    format!(
        "#include \"host_cuda.h\"\n{text}\n{driver}\nconst Entry entries[] = {{\n{entries}}};\n\
         const unsigned entry_count = sizeof entries / sizeof *entries;\n"
    )
}

/// A library of twins, which is a driver. They share their blocks' memory, so one runs at a time.
pub(super) struct Twin {
    driver: Mutex<Driver>,
    module: Module,
    /// Picks the order of blocks and warps.
    set_order: unsafe extern "C" fn(c_uint),
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
        // The variable may name a compiler behind a cache: `ccache g++`.
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let compile = || {
            let mut words = compiler.split_whitespace();
            let mut command = Command::new(words.next().unwrap_or("c++"));
            command.args(words);
            command
        };
        if compile().arg("--version").output().is_err() {
            eprintln!("there is no C++ compiler {compiler}: twins are not compared");
            return None;
        }
        let name = format!("ltc-twin-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let (text_path, library_path) = (folder.join("kernels.cpp"), folder.join("kernels.so"));
        std::fs::write(&text_path, with_driver(text, sources)).expect("a file is written");
        let here = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cuda/tests"));
        let mut command = compile();
        command.args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing"]);
        command.args(["-fno-gnu-unique", "-Wl,-Bsymbolic"]);
        if cfg!(target_arch = "x86_64") {
            command.arg("-mfma");
        }
        let done = command.arg("-I").arg(here).arg(&text_path).arg("-o").arg(&library_path).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // SAFETY: the library does as a driver.
        let driver = unsafe { Driver::open_at(&library_path) }.expect("the library that was just made");
        // SAFETY: it has no code that runs when it is loaded but the standard library's.
        let library = unsafe { Library::new(&library_path) }.expect("the library that was just made");
        std::fs::remove_dir_all(&folder).expect("the folder that was just made");
        // SAFETY: the function has this type in `driver.h`.
        let set_order = *unsafe { library.get(b"twin_set_order\0") }.expect("the function of `driver.h`");
        let module = driver.load(b"").expect("a module");
        Some(Twin { driver: Mutex::new(driver), module, set_order, _library: library })
    }

    /// The GPU it says it is.
    pub(super) fn arch(&self) -> Arch {
        self.driver.lock().arch(0).expect("a device")
    }

    /// Runs a kernel; `order` picks the order of blocks and warps.
    ///
    /// # Safety
    /// Operands have the elements the kernel reads and writes.
    unsafe fn launch(&self, launch: &Launch, operands: Operands<'_>, order: u32) -> Result<(), LibraryError> {
        let driver = self.driver.lock();
        let function = driver.function(self.module, &launch.source.name)?;
        // SAFETY: the lock keeps others from running, and the function is the launch's; the rest is by this function's
        // contract. The driver has one stream.
        unsafe {
            (self.set_order)(order);
            driver.launch(function, launch, operands, std::ptr::null_mut())
        }
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
    ) -> Result<(), LibraryError> {
        let outputs: Vec<u64> = to.iter().map(|p| *p as u64).collect();
        let inputs: Vec<u64> = from.iter().map(|p| *p as u64).collect();
        let mut scratch = vec![u64::MAX; launches.scratch_bytes / 8];
        let scratch = scratch.as_mut_ptr() as u64;
        let operands = Operands { outputs: &outputs, inputs: &inputs, numbers, scratch };
        // SAFETY: by this function's contract.
        launches.each.iter().try_for_each(|launch| unsafe { self.launch(launch, operands, order) })
    }
}
