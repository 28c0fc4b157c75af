//! `cargo xtask dry`: libtorch's own CUDA host code, tested without a GPU. A stand-in of the CUDA runtime
//! (`tests/cuda`) is built and preloaded; docs/cuda.md says what that can show.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

#[derive(clap::Args)]
pub(crate) struct DryOptions {
    /// Write the layouts that the survey finds to `tests/cuda/layouts.txt` instead of comparing them.
    #[arg(long)]
    layouts: bool,
    /// No survey, and work done late only.
    #[arg(long)]
    quick: bool,
    /// Run these tests only, of `ltc-python/tests/dry` or `dry_ltc`, and no survey; what pytest takes.
    tests: Vec<String>,
}

impl DryOptions {
    /// What `cargo xtask ci` runs.
    pub(crate) fn quick() -> Self {
        DryOptions { layouts: false, quick: true, tests: Vec::new() }
    }
}

/// Where the sources of the stand-in and of the shadow are.
const SOURCES: &str = "tests/cuda";

/// What the shadow is made of; all other sources are the stand-in's.
const SHADOW: [&str; 2] = ["shadow.cpp", "attention.cpp"];

/// What NVRTC is made of: it compiles kernels of ours for the host.
const COMPILER: &str = "nvrtc.cpp";

/// What NCCL is made of: ranks are processes of this machine.
const NCCL: &str = "nccl.cpp";

/// What kernels are compiled with for the host.
const HOST_HEADER: &str = "ltc-kernels/src/cuda/tests";

/// Tests of it, and of plain `cuda` tensors over it.
const TESTS: &str = "ltc-python/tests/dry";

/// Tests of `ltc` over it. They have a process of their own: plain `cuda` tensors cannot go backward in one with `ltc`.
const PLACE_TESTS: &str = "ltc-python/tests/dry_ltc";

/// Tests in Rust that are run with `ltc` on a GPU.
const RUST_TESTS: [&str; 4] = ["conformance", "random_programs", "replayed_steps", "devices_and_threads"];

/// What of the first of these CI runs: kernels of ours take a minute of compiling where none of them is kept.
const BY_CI: &str = "without::";

/// Of these, what has to be the CPU's: draws, and which dtypes an operator refuses.
const OF_THE_CPU: [&str; 3] = ["over_draws", "over_all_operators", "random_steps_agree_with_eager"];

const PYTHON: &str = ".venv/bin/python";

/// What the tests run with, beside the stand-in.
const ENVIRONMENT: [(&str, &str); 3] = [
    // cuBLASLt asks the driver itself.
    ("DISABLE_ADDMM_CUDA_LT", "1"),
    // Kernels that torch compiles with Triton need a driver.
    ("TORCH_DISABLE_NATIVE_JIT", "1"),
    ("TORCH_CPP_LOG_LEVEL", "ERROR"),
];

/// Prints the CUDA version that torch was built for, and the folders of torch and of the CUDA headers.
const ASK_TORCH: &str = "
import pathlib, sysconfig, torch
site = pathlib.Path(torch.__file__).parent.parent
version = torch.version.cuda or ''
print(version)
print(site / 'torch')
for folder in dict.fromkeys([site, pathlib.Path(sysconfig.get_path('purelib'))]):
    print(folder / 'nvidia' / ('cu' + version.split('.')[0]) / 'include')
    print(folder / 'nvidia' / 'nccl' / 'include')";

/// The torch of `.venv`.
struct Torch {
    cuda: String,
    folder: PathBuf,
    headers: Vec<PathBuf>,
}

/// Builds what is tested with, then runs the tests with work done late and at once, and the survey of layouts.
pub(crate) fn run(root: &Path, options: &DryOptions) -> Result<()> {
    let start = Instant::now();
    println!("==> CUDA without a GPU: libtorch's host code over a stand-in of the CUDA runtime (docs/cuda.md)");
    let torch = Torch::ask(root)?;
    if torch.cuda.is_empty() {
        println!("    skipped: the torch of .venv is built without CUDA");
        return Ok(());
    }
    torch.need_headers(root)?;
    let out = root.join("target/dry");
    fs::create_dir_all(out.join("kernels")).with_context(|| out.display().to_string())?;
    let stand_in = build(root, &torch, &out)?;
    let orders: &[&str] = if options.quick { &["late"] } else { &["late", "early"] };
    for order in orders.iter().filter(|_| !options.layouts) {
        println!("==> tests, with work done {order}");
        let pytest = |tests: &[&str]| {
            let args = [&["-m", "pytest", "-q", "-p", "no:cacheprovider"], tests].concat();
            python(root, &stand_in, order, options.quick, &args)
        };
        if options.tests.is_empty() {
            pytest(&[TESTS])?;
            pytest(&[PLACE_TESTS])?;
        } else {
            pytest(&options.tests.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    for order in orders.iter().filter(|_| options.tests.is_empty() && !options.layouts) {
        rust(root, &torch, &stand_in, order, options.quick)?;
    }
    if options.tests.is_empty() && !options.quick {
        println!("==> layouts of results on the CPU, Meta and CUDA");
        let (program, table) = (format!("{TESTS}/survey.py"), format!("{SOURCES}/layouts.txt"));
        let mut args = vec![program.as_str(), &table];
        args.extend(options.layouts.then_some("--write"));
        python(root, &stand_in, "early", false, &args)?;
    }
    println!("==> done in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

impl Torch {
    fn ask(root: &Path) -> Result<Torch> {
        let out = Command::new(PYTHON).args(["-c", ASK_TORCH]).current_dir(root).output();
        let out = out.with_context(|| format!("{PYTHON} did not start: run `make setup`"))?;
        if !out.status.success() {
            bail!("torch does not import: {}", String::from_utf8_lossy(&out.stderr));
        }
        let text = String::from_utf8(out.stdout).context("what torch says about itself")?;
        let mut lines = text.lines().map(str::to_owned);
        let cuda = lines.next().unwrap_or_default();
        let folder = lines.next().unwrap_or_default().into();
        Ok(Torch { cuda, folder, headers: lines.map(PathBuf::from).collect() })
    }

    /// CUDA's headers come with torch, but for some that have a package of their own.
    fn need_headers(&self, root: &Path) -> Result<()> {
        if self.headers.iter().any(|folder| folder.join("crt/host_defines.h").is_file()) {
            return Ok(());
        }
        let package = format!("nvidia-cuda-crt=={}.*", self.cuda);
        println!("    installing {package} into .venv: headers that the stand-in is built with");
        let args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", &package];
        checked(Command::new(PYTHON).args(args).current_dir(root))
    }
}

/// Builds the stand-in and the shadow where they are not up to date; gives the path of the stand-in.
fn build(root: &Path, torch: &Torch, out: &Path) -> Result<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(root.join(SOURCES)).context(SOURCES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "cpp")
            && !SHADOW.iter().chain(&[COMPILER, NCCL]).any(|apart| path.ends_with(apart))
        {
            sources.push(path);
        }
    }
    sources.sort();
    // libtorch and the CUDA libraries look for the driver under this name.
    let stand_in = out.join("libcuda.so.1");
    let mut args = ["-Wl,-soname,libcuda.so.1", "-Wno-attributes", "-ldl"].map(str::to_owned).to_vec();
    args.extend(torch.headers.iter().map(|folder| format!("-I{}", folder.display())));
    compile(root, &sources, &args, &stand_in)?;

    let include = torch.folder.join("include");
    let mut args = vec![format!("-isystem{}", include.display())];
    args.push(format!("-isystem{}", include.join("torch/csrc/api/include").display()));
    args.push(format!("-L{}", torch.folder.join("lib").display()));
    args.extend(["-ltorch_cpu".to_owned(), "-lc10".to_owned(), stand_in.display().to_string()]);
    compile(root, &SHADOW.map(|source| root.join(SOURCES).join(source)), &args, &out.join("libdry_shadow.so"))?;

    // The library that torch brings is loaded besides, for what the stand-in has not.
    let mut args: Vec<_> = torch.headers.iter().map(|folder| format!("-I{}", folder.display())).collect();
    args.push(stand_in.display().to_string());
    compile(root, &[root.join(SOURCES).join(NCCL)], &args, &out.join("libdry_nccl.so"))?;

    let text = |name: &str, value: &str| format!("-D{name}=\"{value}\"");
    let fused = if cfg!(target_arch = "x86_64") { "-mfma" } else { "" };
    let args = [
        text("DRY_CUDA_MADE", &out.join("host_kernels").display().to_string()),
        text("DRY_CUDA_HOST_HEADER", &root.join(HOST_HEADER).display().to_string()),
        text("DRY_CUDA_HOST_FLAGS", fused),
    ];
    compile(root, &[root.join(SOURCES).join(COMPILER)], &args, &out.join("libnvrtc.so.13"))?;
    Ok(stand_in)
}

/// Compiles a shared object, unless it was made by this very command from these very texts.
fn compile(root: &Path, sources: &[PathBuf], args: &[String], output: &Path) -> Result<()> {
    // It may come with words before it, such as a cache's.
    let compiler = env::var("CXX").unwrap_or_default();
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words);
    command.args(["-std=c++20", "-O1", "-Wall", "-shared", "-fPIC"]).args(sources).args(args).arg("-o").arg(output);
    let mut made_of = format!("{command:?}\n");
    for header in ["dry_cuda.h", "dry_shadow.h", "runtime.h"].map(|name| root.join(SOURCES).join(name)) {
        made_of += &fs::read_to_string(&header).with_context(|| header.display().to_string())?;
    }
    for source in sources {
        made_of += &fs::read_to_string(source).with_context(|| source.display().to_string())?;
    }
    let stamp = output.with_extension("made_of");
    if output.is_file() && fs::read_to_string(&stamp).is_ok_and(|text| text == made_of) {
        return Ok(());
    }
    println!("    building {}", output.display());
    checked(&mut command)?;
    fs::write(&stamp, made_of).with_context(|| stamp.display().to_string())
}

/// Runs tests in Rust over the stand-in.
fn rust(root: &Path, torch: &Torch, stand_in: &Path, order: &str, quick: bool) -> Result<()> {
    println!("==> tests in Rust, with work done {order}");
    let (tests, only) = if quick { (&RUST_TESTS[..1], Some(BY_CI)) } else { (&RUST_TESTS[..], None) };
    let preload = format!("{}:{}", stand_in.display(), stand_in.with_file_name("libdry_shadow.so").display());
    let library = torch.folder.join("lib");
    let mut command = Command::new("cargo");
    command.args(["test", "-q"]).args(crate::packages::all()).args(tests.iter().flat_map(|test| ["--test", test]));
    command.arg("--").args(only).args(OF_THE_CPU.iter().flat_map(|test| ["--skip", test]));
    command.current_dir(root).envs(ENVIRONMENT).env("DRY_CUDA_ORDER", order).env("LTC_DEVICES", "cuda:0,cpu");
    command.env("LTC_NVRTC", stand_in.with_file_name("")).env("LTC_CUDA_CACHE", "0").env("LTC_TEST_CASES", "60");
    let host = Command::new("rustc").arg("-vV").output().context("rustc did not start")?;
    let host = String::from_utf8_lossy(&host.stdout).lines().find_map(|l| l.strip_prefix("host: ").map(str::to_owned));
    let host = host.context("rustc does not say which host it is for")?.to_uppercase().replace('-', "_");
    let runner = format!("env LD_PRELOAD={preload} LD_LIBRARY_PATH={}", library.display());
    command.env(format!("CARGO_TARGET_{host}_RUNNER"), runner);
    checked(&mut command)
}

/// Runs Python over the stand-in.
fn python(root: &Path, stand_in: &Path, order: &str, quick: bool, args: &[&str]) -> Result<()> {
    let mut command = Command::new(PYTHON);
    if !quick {
        command.env("DRY_CUDA_LONG", "1");
    }
    command.args(args).current_dir(root).envs(ENVIRONMENT);
    let preload = format!("{}:{}", stand_in.display(), stand_in.with_file_name("libdry_nccl.so").display());
    command.env("LD_PRELOAD", preload).env("DRY_CUDA_ORDER", order).env("LTC_DEVICES", "cpu,cuda:0");
    command.env("PYTORCH_KERNEL_CACHE_PATH", stand_in.with_file_name("kernels"));
    command.env("LTC_NVRTC", stand_in.with_file_name("")).env("LTC_CUDA_CACHE", "0");
    checked(&mut command)
}

fn checked(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let status = command.status().with_context(|| format!("{program} did not start"))?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    println!("    {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
