//! Kernels on a GPU: other threads compile their code while programs run without them (decision record 0017).
//!
//! Kernels of a program that have no code yet are compiled as a few texts, and the program runs as recorded, by
//! libtorch's kernels, until all code is there. Functions are known by name, which follows from their text, so that a
//! program over other sizes mostly finds its own.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use ltc_kernels::{
    Jit,
    cuda::{self, Arch, CodeCache, CodeKey, Driver, Function, GraphDriver, LibraryError, Nvrtc, Source},
};
use ltc_torch_sys::{Place, library_folder};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::{
    config::GpuConfig,
    fusion::GpuKernel,
    program::{InstrKind, Program},
};

fn kernels(program: &Program) -> impl Iterator<Item = &GpuKernel> {
    program.instrs.iter().filter_map(|instr| match &instr.kind {
        InstrKind::Fused(fused) => fused.gpu.as_ref(),
        _ => None,
    })
}

/// Machine code of some of a program's kernels, or why there is none.
type Code = Arc<OnceLock<Result<Vec<u8>, String>>>;

/// What is to be compiled.
struct Request {
    text: String,
    arch: Arch,
    code: Code,
}

/// NVIDIA's libraries, opened once.
struct Toolchain {
    nvrtc: Nvrtc,
    driver: Driver,
    /// `None`: it is too old for graphs.
    graphs: Option<GraphDriver>,
    cache: Option<CodeCache>,
}

/// Bytes of machine code that are kept on disk.
const CACHE_BYTES: u64 = 256 << 20;

impl Toolchain {
    fn open(config: &GpuConfig) -> Result<Toolchain, LibraryError> {
        let site = library_folder().and_then(|torch| Some(torch.parent()?.parent()?.to_owned()));
        // NVIDIA's Python packages install NVRTC beside torch.
        let beside = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "torch/lib"];
        let beside = site.iter().flat_map(|site| beside.map(|folder| site.join(folder)));
        let folders: Vec<PathBuf> = config.nvrtc.iter().cloned().chain(beside).collect();
        let cache = config.cache.clone().map(|folder| CodeCache::new(folder, CACHE_BYTES));
        Ok(Toolchain {
            nvrtc: Nvrtc::open(&folders)?,
            driver: Driver::open()?,
            graphs: GraphDriver::open().ok(),
            cache,
        })
    }

    fn compile(&self, text: &str, arch: Arch) -> Result<Vec<u8>, LibraryError> {
        let compile = || self.nvrtc.machine_code(text, arch);
        match &self.cache {
            Some(cache) => cache.code(CodeKey { text, arch, compiler: self.nvrtc.version() }, compile),
            None => compile(),
        }
    }
}

/// The libraries, or why kernels have no code here. The first device to ask says where to look for them.
static TOOLCHAIN: OnceLock<Result<Toolchain, String>> = OnceLock::new();

fn toolchain(config: &GpuConfig) -> Result<&'static Toolchain, &'static str> {
    TOOLCHAIN.get_or_init(|| Toolchain::open(config).map_err(|e| e.to_string())).as_ref().map_err(String::as_str)
}

/// The driver, once there was a kernel to compile.
pub(super) fn driver() -> Option<&'static Driver> {
    TOOLCHAIN.get()?.as_ref().ok().map(|toolchain| &toolchain.driver)
}

/// The part of the driver that graphs use; `None` without a driver or without a compiler.
pub(super) fn graph_driver(config: &GpuConfig) -> Option<&'static GraphDriver> {
    toolchain(config).ok().and_then(|toolchain| toolchain.graphs.as_ref())
}

/// At most so many threads compile.
const COMPILERS: usize = 4;
/// At most so many kernels are compiled as one text.
const TOGETHER: usize = 8;

/// How many threads compile: programs run meanwhile.
fn compilers() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).clamp(1, COMPILERS)
}

/// The threads that compile, which end with the process.
fn compiler(toolchain: &'static Toolchain) -> Option<&'static Sender<Request>> {
    static COMPILER: OnceLock<Option<Sender<Request>>> = OnceLock::new();
    let start = || {
        let (send, requests) = mpsc::channel::<Request>();
        let requests = Arc::new(Mutex::new(requests));
        let compile = move |requests: &Mutex<Receiver<Request>>| {
            // The lock is held while one waits for a text, not while it is compiled.
            let next = || requests.lock().recv();
            while let Ok(Request { text, arch, code }) = next() {
                let _ = code.set(toolchain.compile(&text, arch).map_err(|e| e.to_string()));
            }
        };
        let started = (0..compilers()).filter(|_| {
            let requests = requests.clone();
            thread::Builder::new().name("ltc-nvrtc".into()).spawn(move || compile(&requests)).is_ok()
        });
        (started.count() > 0).then_some(send)
    };
    COMPILER.get_or_init(start).as_ref()
}

/// Functions that were loaded, by the number of their GPU and their name.
static FUNCTIONS: Mutex<Option<FxHashMap<(u8, String), Function>>> = Mutex::new(None);

/// The kernels of a program on their way to code.
#[derive(Debug)]
pub(super) struct GpuProgram {
    gpu: u8,
    code: Vec<Code>,
    /// Set once all code is there or has failed: whether the program's kernels have functions.
    linked: OnceLock<bool>,
}

/// Asks for code to be compiled.
fn ask(text: String, gpu: u8, code: &Code, config: &GpuConfig) -> Result<(), String> {
    let toolchain = toolchain(config).map_err(str::to_owned)?;
    let arch = toolchain.driver.arch(gpu.into()).map_err(|e| e.to_string())?;
    let compiler = compiler(toolchain).ok_or("the system has no thread for the compiler")?;
    compiler.send(Request { text, arch, code: code.clone() }).map_err(|e| e.to_string())
}

impl GpuProgram {
    /// Asks for the code of a program's kernels; `None` if it has none.
    pub(super) fn of(program: &Program, place: Place, jit: Jit, config: &GpuConfig) -> Option<GpuProgram> {
        let Place::Cuda(gpu) = place else { return None };
        kernels(program).next()?;
        let known = FUNCTIONS.lock();
        let is_known = |name: &str| known.as_ref().is_some_and(|k| k.contains_key(&(gpu, name.to_owned())));
        let mut new: Vec<&Source> = kernels(program).flat_map(GpuKernel::sources).collect();
        new.retain(|source| !is_known(&source.name));
        drop(known);
        new.sort_by(|a, b| a.name.cmp(&b.name));
        new.dedup_by(|a, b| a.name == b.name);
        let together = new.len().div_ceil(compilers()).clamp(1, TOGETHER);
        let ask = |sources: &[&Source]| {
            let code = Code::default();
            if let Err(why) = ask(cuda::program(sources.iter().copied()), gpu, &code, config) {
                let _ = code.set(Err(why));
            }
            code
        };
        let code: Vec<Code> = new.chunks(together).map(ask).collect();
        if jit == Jit::Now {
            for code in &code {
                let _ = code.wait();
            }
        }
        Some(GpuProgram { gpu, code, linked: OnceLock::new() })
    }

    /// Whether the program's kernels can be launched. On a thread where its GPU is current.
    pub(super) fn is_ready(&self, program: &Program) -> bool {
        if let Some(&linked) = self.linked.get() {
            return linked;
        }
        let Some(code) = self.code.iter().map(|code| code.get()).collect::<Option<Vec<_>>>() else { return false };
        let code = code.into_iter().map(|code| code.as_ref().map_err(Clone::clone)).collect::<Result<Vec<_>, String>>();
        let linked = code.and_then(|code| self.link(program, &code));
        if let Err(why) = &linked {
            tracing::warn!("kernels for cuda:{} are not there, libtorch's run instead: {why}", self.gpu);
        }
        *self.linked.get_or_init(|| linked.is_ok())
    }

    /// Loads code, if there is any, and gives each kernel its functions.
    fn link(&self, program: &Program, code: &[&Vec<u8>]) -> Result<(), String> {
        let text = |e: LibraryError| e.to_string();
        let driver = || driver().ok_or_else(|| "there is no driver".to_owned());
        let load = |code: &&Vec<u8>| driver()?.load(code).map_err(text);
        let modules = code.iter().map(load).collect::<Result<Vec<_>, String>>()?;
        let mut functions = FUNCTIONS.lock();
        let functions = functions.get_or_insert_default();
        for kernel in kernels(program) {
            let function = |source: &Source| {
                let key = (self.gpu, source.name.clone());
                if let Some(&known) = functions.get(&key) {
                    return Ok(known);
                }
                let driver = driver()?;
                let found = modules.iter().find_map(|&module| driver.function(module, &source.name).ok());
                let function = found.ok_or_else(|| format!("{} was compiled and is gone", source.name))?;
                functions.insert(key, function);
                Ok(function)
            };
            let of_kernel = kernel.sources().map(function).collect::<Result<_, String>>()?;
            let _ = kernel.functions.set(of_kernel);
        }
        Ok(())
    }
}
