//! The `ltc` device for Rust programs that use [`tch`].
//!
//! Tensors on the device record what is done to them; a sync (reading a value, [`sync`], or a limit) sends what is
//! pending to libtorch as one compiled program. Autograd, `nn`, optimisers, views and in-place updates are libtorch's
//! own and work unchanged: a program initialises the device once and moves its variables and inputs.
//!
//! ```
//! use tch::{Kind, Tensor};
//!
//! # fn main() -> Result<(), ltc_torch::Error> {
//! ltc_torch::init()?;
//! let x = Tensor::arange(6, (Kind::Float, ltc_torch::DEVICE));
//! let y = (&x * 2.0 + 1.0).view([2, 3]).sum(Kind::Float); // recorded, nothing runs
//! assert_eq!(y.double_value(&[]), 36.0); // one program runs
//! # Ok(())
//! # }
//! ```
//!
//! [`DEVICE`] is the device as a `tch::Device`: variable stores, factories, layers, `to_device` and iterators take it,
//! and `t.device()` of a lazy tensor is it. A program written for a device it is given needs nothing else.
//!
//! # Errors
//! Functions fail with [`Error::NotInitialised`] before [`init`]. Those of one device fail where there is no such one,
//! those of a lazy tensor for any other, those that send what is pending as [`sync`], and those that wait as [`wait`].
#![forbid(unsafe_code)]

mod capture;
mod capture_log;
#[cfg(feature = "tch")]
mod compiled;
mod draws;
mod error;
mod fork;
mod host_program;
mod inspect;
mod numbers;
mod observe;
mod recorder;
mod replay;
mod sites;
mod step;
#[cfg(feature = "tch")]
mod tensors;

use std::{
    cell::Cell,
    env,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

pub use capture::Capture;
pub use capture_log::is_open as is_capturing;
pub use capture_log::{capture_keeps_reads, capture_reads};
#[cfg(feature = "tch")]
pub use compiled::{Compiled, compile, compile_frozen};
pub use draws::Draws;
pub use error::Error;
pub use host_program::{HostProgram, HostRecording};
pub use inspect::{Computation, cache_dot, computation, computation_hash, never_was, run_computation, value_id};
use ltc_backend::DeviceIndex;
pub use ltc_core::{Config, Event, FailureHook, Interrupt, Metrics, SyncReason};
use ltc_core::{
    Session,
    settings::{BadSetting, Environment},
};
use ltc_eager_fallback::Forced;
pub use ltc_eager_fallback::advice;
use ltc_ir::{DType, Layout};
pub use ltc_ir::{ErrorClass, FallbackReason, passes::Switches};
pub use ltc_torch_sys::capture_pause;
pub use ltc_torch_sys::{
    Ambient, AsTensor, Borrowed, Calls, History, Tensor, TensorState, ambient, bump_version, calls, grad_of,
    history_is_freed, impl_of, note_registration, pass_to, set_freed_history, set_grad, state_of,
};
pub use ltc_ts::{Fusion, GpuConfig, Jit, Place, RunStats, StepTime, finish_compiling, rewrite_names};
use ltc_ts::{TsBackend, TsConfig};
pub use numbers::HostNumbers;
use observe::release_memory;
pub use observe::{
    cached_programs, capacity, clear_cache, device_name, empty_cache, memory, metrics, pending_count, record_events,
    reset_memory, reset_metrics, run_stats, set_profiling, set_reuse_nodes, storage_bytes, take_events, take_profile,
};
use parking_lot::{Mutex, RwLock};
pub use replay::Replayer;
pub use sites::{SiteSource, set_site_source};
pub use step::{CompiledStep, NotReplayable, Signature, without_history};
#[cfg(feature = "tch")]
pub use tensors::{DEVICE, empty, full, lazify, ones, zeros};

use crate::{recorder::LtcRecorder, sites::Sites};

/// How the device is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The session's configuration.
    pub config: Config,
    /// Where each device (`ltc:0`, `ltc:1`, ...) computes and keeps its values; each has its own executor.
    /// `LTC_DEVICES`: how many devices there are on the CPU, or places: `cpu,cuda:0`; one on the CPU.
    pub places: Vec<Place>,
    /// Which operators run in fused kernels. `LTC_FUSION`: `0`, `exact`, `1`; all.
    pub fusion: Fusion,
    /// Whether fused kernels become machine code, in the background. `LTC_JIT`: `0`, `1`, `now` (before their first
    /// run); on.
    pub jit: Jit,
    /// Which whole-graph rewrites may apply. `LTC_REWRITES`: `all`, `none`, `-name,...` (all but these) or `name,...`
    /// (only these), of [`rewrite_names`]; all.
    pub rewrites: Switches,
    /// Bytes of free memory kept for the next run. `LTC_POOL_BYTES`, 0 for none; 1 GiB.
    pub pool_bytes: usize,
    /// Bytes a program may have alive at once, if the order of its steps and making cheap values again can keep to it.
    /// `LTC_MEMORY_BUDGET`, 0 for no budget; none.
    pub budget_bytes: usize,
    /// Run on one thread what is too small for several, though libtorch would start them
    /// ([`TsConfig::single_thread_small`]). `LTC_SINGLE_THREAD_SMALL`; on.
    pub single_thread_small: bool,
    /// How programs run on GPUs. `LTC_NVRTC`, `LTC_CUDA_CACHE`, `LTC_CUDA_GRAPHS`; NVRTC beside torch, `ltc` in the
    /// user's cache folder, graphs.
    pub gpu: GpuConfig,
    /// Wait after each step on a GPU, so that an error names the operator and the line that failed. `LTC_CUDA_SYNC`;
    /// off.
    pub cuda_sync: bool,
    /// The device answers to `tch::Device::Mps`, the device type of which libtorch has none: [`DEVICE`]. On in builds
    /// with the feature `tch`.
    pub tch_device: bool,
    /// Remember where operations were recorded, for error messages. `LTC_SITES`; on.
    pub track_sites: bool,
    /// Compare each call with the one that came next the last time before looking it up. `LTC_EXPECT_CALLS`; on.
    pub expect_calls: bool,
    /// The first call of an elementwise operator at new sizes runs its kernel on one element, to see what comes of it,
    /// not on as many as the call has. `LTC_SMALL_PROBES`; on.
    pub small_probes: bool,
}

impl Options {
    /// The defaults, changed by `LTC_*` environment variables ([`ltc_core::settings`]).
    ///
    /// # Errors
    /// Fails for a variable that makes no sense: names it, its value, and what it may say.
    pub fn from_env() -> Result<Self, Error> {
        Options::from_vars(&Environment::from_env()?)
    }

    /// The defaults, changed by these variables.
    ///
    /// # Errors
    /// Fails for devices or rewrites that there are not: names the variable, its value, and what it may say.
    pub fn from_vars(vars: &Environment) -> Result<Self, Error> {
        let switch = |name: &str| vars.switch(name).unwrap_or(true);
        Ok(Options {
            config: Config::from_vars(vars),
            places: vars.text("LTC_DEVICES").map(places).transpose()?.unwrap_or_else(|| vec![Place::Cpu]),
            fusion: vars.text("LTC_FUSION").and_then(|v| v.parse().ok()).unwrap_or_default(),
            jit: vars.text("LTC_JIT").and_then(|v| v.parse().ok()).unwrap_or_default(),
            rewrites: vars.text("LTC_REWRITES").map(rewrites).transpose()?.unwrap_or_default(),
            pool_bytes: vars.number("LTC_POOL_BYTES").unwrap_or(1 << 30),
            budget_bytes: vars.number("LTC_MEMORY_BUDGET").unwrap_or(0),
            single_thread_small: switch("LTC_SINGLE_THREAD_SMALL"),
            gpu: GpuConfig {
                nvrtc: vars.text("LTC_NVRTC").map(PathBuf::from),
                cache: code_cache(vars),
                graphs: switch("LTC_CUDA_GRAPHS"),
            },
            cuda_sync: vars.switch("LTC_CUDA_SYNC").unwrap_or(false),
            tch_device: cfg!(feature = "tch"),
            track_sites: switch("LTC_SITES"),
            expect_calls: switch("LTC_EXPECT_CALLS"),
            small_probes: switch("LTC_SMALL_PROBES"),
        })
    }
}

/// Reads `LTC_CUDA_CACHE`.
fn code_cache(vars: &Environment) -> Option<PathBuf> {
    let of_user = || {
        let folder = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Some(folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?.join("ltc"))
    };
    match vars.text("LTC_CUDA_CACHE") {
        Some("0") => None,
        Some(folder) => Some(folder.into()),
        None => of_user(),
    }
}

/// Most devices there may be.
const MAX_DEVICES: usize = 64;

/// Reads `LTC_DEVICES`.
fn places(text: &str) -> Result<Vec<Place>, BadSetting> {
    let bad = || {
        let allowed =
            format!("a number of devices from 1 to {MAX_DEVICES}, or as many of cpu, cuda, cuda:N and commas");
        BadSetting { name: "LTC_DEVICES".into(), value: text.into(), allowed }
    };
    let places: Vec<Place> = match text.trim().parse::<usize>() {
        Ok(count) => vec![Place::Cpu; count.min(MAX_DEVICES + 1)],
        Err(_) => text.split(',').map(str::parse).collect::<Result<_, ()>>().map_err(|()| bad())?,
    };
    if (1..=MAX_DEVICES).contains(&places.len()) { Ok(places) } else { Err(bad()) }
}

/// Reads `LTC_REWRITES`.
fn rewrites(text: &str) -> Result<Switches, BadSetting> {
    let known = || rewrite_names().collect::<Vec<_>>().join(", ");
    let bad = |allowed: String| BadSetting { name: "LTC_REWRITES".into(), value: text.into(), allowed };
    let how = "all, none, names, or names with a minus, of";
    let switches = text.parse::<Switches>().map_err(|_| bad(format!("{how} {}", known())))?;
    match switches.names().iter().find(|n| !rewrite_names().any(|known| known == **n)) {
        Some(_) => Err(bad(format!("{how} {}", known()))),
        None => Ok(switches),
    }
}

struct Runtime {
    session: Arc<Session>,
    backend: Arc<TsBackend>,
    computations: inspect::Computations,
    forced: Arc<RwLock<Forced>>,
}

/// libtorch's dispatcher is one per process, so its lazy device is too.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

fn runtime() -> Result<&'static Runtime, Error> {
    RUNTIME.get().ok_or(Error::NotInitialised)
}

/// Registers the device with [`Options::from_env`]. Calling it again does nothing. Variables that look like settings
/// and are none are told as warnings, by `tracing` or, where nobody listens to that, on stderr.
///
/// # Errors
/// Fails when the running libtorch is not the version LTC was built for, when a variable makes no sense, and, with the
/// feature `tch`, when libtorch has MPS devices of its own ([`Options::tch_device`]).
pub fn init() -> Result<(), Error> {
    let warn = |warning: &str| {
        tracing::warn!("{warning}");
        if !tracing::dispatcher::has_been_set() {
            eprintln!("warning: {warning}");
        }
    };
    init_telling(warn, |_| ())
}

/// As [`init`]; `warn` is told the warnings, and `change` has a last word on the options.
///
/// # Errors
/// As [`init`].
pub fn init_telling(warn: impl Fn(&str), change: impl FnOnce(&mut Options)) -> Result<(), Error> {
    if RUNTIME.get().is_some() {
        return Ok(());
    }
    let vars = Environment::from_env()?;
    vars.warnings().iter().for_each(|warning| warn(warning));
    let mut options = Options::from_vars(&vars)?;
    change(&mut options);
    init_with(options)
}

/// Registers the device. Once registered, later calls (and their options) do nothing.
///
/// # Errors
/// As [`init`], the variables apart; also for a place that this machine does not have, and for a name of
/// [`Config::force_fallback`] that is no operator's.
pub fn init_with(options: Options) -> Result<(), Error> {
    static INIT: Mutex<()> = Mutex::new(());
    let _once = INIT.lock();
    if RUNTIME.get().is_some() {
        return Ok(());
    }
    for place in &options.places {
        place.check()?;
    }
    if options.tch_device && ltc_torch_sys::has_mps() {
        return Err(Error::DeviceTaken);
    }
    let forced = Arc::new(RwLock::new(Forced::new(options.config.force_fallback.iter().map(String::as_str))?));
    let backend = Arc::new(TsBackend::with_config(TsConfig {
        places: options.places.clone(),
        fusion: options.fusion,
        jit: options.jit,
        rewrites: options.rewrites.clone(),
        pool_bytes: options.pool_bytes,
        budget_bytes: options.budget_bytes,
        single_thread_small: options.single_thread_small,
        sync_steps: options.cuda_sync,
        gpu: options.gpu.clone(),
        ..TsConfig::default()
    }));
    let session = Arc::new(Session::new(backend.clone(), options.config)?);
    let sites = Arc::new(Sites::default());
    if options.track_sites {
        session.set_site_resolver(sites.clone());
    }
    let recorder = LtcRecorder {
        session: session.clone(),
        backend: backend.clone(),
        sites,
        generator_layout: Layout::contiguous(DType::RngState, &[]).into(),
        track_sites: options.track_sites,
        expect_calls: options.expect_calls,
        small_probes: options.small_probes,
        forced: forced.clone(),
    };
    ltc_torch_sys::register(recorder, "ltc", &options.places)?;
    fork::install()?;
    if options.tch_device {
        ltc_torch_sys::name_mps()?;
    }
    RUNTIME.get_or_init(|| Runtime { session, backend, computations: inspect::Computations::default(), forced });
    Ok(())
}

/// Copies a tensor to `ltc:0`; differentiable. A tensor that is there already is returned as it is.
///
/// # Errors
/// As [`to_device`].
pub fn to_lazy<T: AsTensor + From<Tensor>>(t: &T) -> Result<T, Error> {
    to_device(t, 0)
}

/// Copies a tensor to `ltc:index`; differentiable.
///
/// # Errors
/// Fails where there is no such device, and for a tensor of a dtype or layout that it does not have.
pub fn to_device<T: AsTensor + From<Tensor>>(t: &T, index: u16) -> Result<T, Error> {
    runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::to_device(t, index)?.into())
}

/// Copies a tensor to the CPU; differentiable. A sync point, and a wait for this value.
///
/// # Errors
/// Fails with what an operation that the value needs failed with.
pub fn to_cpu<T: AsTensor + From<Tensor>>(t: &T) -> Result<T, Error> {
    Ok(ltc_torch_sys::to_cpu(t)?.into())
}

/// Whether a tensor is on the device.
pub fn is_lazy(t: &impl AsTensor) -> bool {
    ltc_torch_sys::lazy_device_of(t).is_some()
}

/// Index of the lazy device a tensor is on.
pub fn device_of(t: &impl AsTensor) -> Option<u16> {
    ltc_torch_sys::lazy_device_of(t)
}

/// How many lazy devices there are.
///
/// # Errors
/// Fails before [`init`].
pub fn device_count() -> Result<u16, Error> {
    Ok(runtime()?.session.devices().len() as u16)
}

/// Where a device computes and keeps its values.
///
/// # Errors
/// Fails where there is no such device.
pub fn place(index: u16) -> Result<Place, Error> {
    let rt = runtime()?;
    rt.session.device(index)?;
    Ok(rt.backend.place(DeviceIndex(index)).map_err(ltc_core::Error::from)?)
}

/// [`ltc_torch_sys::set_place_key`].
///
/// # Errors
/// Fails for a name that is no dispatch key's.
#[doc(hidden)]
pub fn set_place_key(name: &str) -> Result<(), Error> {
    Ok(ltc_torch_sys::set_place_key(name)?)
}

/// Sends everything pending on all devices to run, without waiting (PyTorch LTC: `mark_step`). While another thread
/// captures a step, what is pending stays so until a later barrier, or until it is read or waited for.
///
/// # Errors
/// Fails where a program does not compile, or a wait for room in the queue is interrupted.
pub fn sync() -> Result<(), Error> {
    if capture_log::is_open_elsewhere() {
        PUT_OFF.set(true);
        return Ok(());
    }
    sync_all()
}

thread_local! {
    /// Whether this thread's last barrier sent nothing, because another thread captured a step: the next one sends it.
    static PUT_OFF: Cell<bool> = const { Cell::new(false) };
}

/// Sends everything pending on all devices to run, whoever recorded it.
fn sync_all() -> Result<(), Error> {
    PUT_OFF.set(false);
    let rt = runtime()?;
    for device in rt.session.devices() {
        device.sync()?;
    }
    Ok(())
}

/// Sends what these tensors need to run, and nothing else, without waiting.
///
/// # Errors
/// As [`sync`]. Tensors that are elsewhere are left alone.
pub fn sync_tensors(tensors: &[impl AsTensor]) -> Result<(), Error> {
    inspect::sync(tensors)
}

/// Waits until all devices have done what was sent to them.
///
/// # Errors
/// The first execution error no read has reported; also where the wait is interrupted ([`set_interrupt`]).
pub fn wait() -> Result<(), Error> {
    if PUT_OFF.get() {
        sync_all()?;
    }
    for device in runtime()?.session.devices() {
        device.wait()?;
    }
    Ok(())
}

/// What kernels of programs warned of since this, or a read of a tensor, last gave it. A read gives it to the handler
/// of libtorch, which writes to standard error where no other is set.
pub fn take_warnings() -> Vec<String> {
    ltc_torch_sys::take_warnings()
}

/// Seeds the default generators of all lazy devices. Recorded: draws before it are not disturbed, nothing runs.
///
/// # Errors
/// Fails before [`init`], and with what libtorch says of a generator that it cannot seed.
pub fn manual_seed(seed: u64) -> Result<(), Error> {
    for index in 0..device_count()? {
        ltc_torch_sys::seed_default_generator(index, seed)?;
    }
    Ok(())
}

/// Operators that run eagerly from here on: `add`, `aten::add` (all overloads) or `aten::add.Tensor` (one), in place of
/// those forced so far (`LTC_FORCE_FALLBACK`).
///
/// # Errors
/// Fails for a word that names no operator: then those forced so far stay.
pub fn set_force_fallback<'a>(operators: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let forced = Forced::new(operators)?;
    *runtime()?.forced.write() = forced;
    ltc_torch_sys::forced_changed();
    Ok(())
}

/// Operators that are forced to run eagerly.
///
/// # Errors
/// Fails before [`init`].
pub fn force_fallback() -> Result<Vec<String>, Error> {
    Ok(runtime()?.forced.read().words())
}

/// Seed of a device's default generator.
///
/// # Errors
/// Fails where there is no such device.
pub fn initial_seed(index: u16) -> Result<u64, Error> {
    runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::default_generator_seed(index)?)
}

/// State of a device's default generator, a CPU byte tensor: a sync point and a wait.
///
/// # Errors
/// As [`wait`]; also where there is no such device.
pub fn generator_state<T: From<Tensor>>(index: u16) -> Result<T, Error> {
    runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::default_generator_state(index)?.into())
}

/// Sets the state of a device's default generator.
///
/// # Errors
/// Fails where there is no such device, and for a tensor that is no state of a generator.
pub fn set_generator_state(index: u16, state: &impl AsTensor) -> Result<(), Error> {
    runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::set_default_generator_state(index, state)?)
}

/// Sends what is pending and waits for all devices, before a fork: a child does not compute it again. Forks without it
/// are safe, too, as long as they run the system's handlers (`fork` does): these wait for what was sent, and in the
/// child the devices start with new threads. What failed says so when it is read.
///
/// # Errors
/// Fails before [`init`].
pub fn before_fork() -> Result<(), Error> {
    runtime()?.quiesce();
    Ok(())
}

/// Lets waits be given up: `interrupted` is asked about every 50 ms by a thread that waits, and where it answers true
/// the wait fails with an error of class [`ErrorClass::Interrupted`]. What was sent runs on, and can be waited for
/// again.
///
/// # Errors
/// Fails before [`init`].
pub fn set_interrupt(interrupted: Interrupt) -> Result<(), Error> {
    runtime()?.session.set_interrupt(interrupted);
    Ok(())
}

/// Calls this whenever a thread is told that a program failed, on that thread: it may look for what [`never_was`].
///
/// # Errors
/// Fails before [`init`].
pub fn set_failure_hook(hook: FailureHook) -> Result<(), Error> {
    runtime()?.session.set_failure_hook(hook);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Place, places};

    #[test]
    fn devices_are_a_number_or_places() {
        assert_eq!(places("2").unwrap(), [Place::Cpu; 2]);
        assert_eq!(places("cpu, cuda:1,cuda").unwrap(), [Place::Cpu, Place::Cuda(1), Place::Cuda(0)]);
        for wrong in ["0", "65", "-1", "", "cpu,", "gpu", "cuda:", &["cpu"; 65].join(",")] {
            let error = places(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("LTC_DEVICES=") && error.contains("from 1 to 64"), "{error}");
        }
    }
}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
