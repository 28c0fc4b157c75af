//! The one configuration of a session.

use std::time::Duration;

use crate::settings::{BadSetting, Environment};

/// Settings of a session. Every optimisation has its switch here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Pending operations at which the graph is sent by itself. `LTC_MAX_PENDING_NODES`; 100,000, as LTC's
    /// `torch_lazy_trim_graph_size`.
    pub max_pending_nodes: usize,
    /// Bytes of device memory that only pending operations hold (the program dropped the tensors) at which the graph is
    /// sent by itself. `LTC_MAX_RETAINED_BYTES`; 256 MiB.
    pub max_retained_bytes: usize,
    /// Programs kept. `LTC_CACHE_ENTRIES`; 1,024, as LTC's `torch_lazy_compilation_cache_size`.
    pub cache_entries: usize,
    /// Memory the kept programs may take, in bytes. `LTC_CACHE_BYTES`; 256 MiB.
    pub cache_bytes: usize,
    /// Programs that may wait for the executor before a sync waits. `LTC_QUEUE_DEPTH`; 2.
    pub queue_depth: usize,
    /// Run programs on the device's executor thread; off: on the caller's. `LTC_ASYNC`; on.
    pub async_execution: bool,
    /// Run short programs on the caller's thread when the device is idle: a hand-over costs more. `LTC_INLINE`; on.
    pub inline_execution: bool,
    /// Run programs that could use every processor on one, beside their caller, where steps are faster so: by their own
    /// measured times if that changes no bit, else by a model of the program and of what its caller records.
    /// `LTC_OVERLAP`; on.
    pub overlap: bool,
    /// What that model takes recording one operation for, with all that a user's program does besides: a number of its
    /// language, not measured. 1.5 us.
    pub recording: Duration,
    /// Record a step into the nodes of the last one (LTC: `torch_lazy_reuse_ir`). `LTC_REUSE_NODES`; on.
    pub reuse_nodes: bool,
    /// Let programs reuse the memory of inputs nobody holds any more. `LTC_DONATION`; on.
    pub donation: bool,
    /// Take dense slices of data (a batch of a data set) as parameters of programs, so that the same program
    /// serves them wherever they begin. `LTC_SLICE_PARAMS`; on.
    pub slice_params: bool,
    /// Let a compiled program serve graphs that differ from its own in nothing but sizes. `LTC_SYMBOLIC`, `off` or
    /// `auto`; on.
    pub symbolic: bool,
    /// Compile again on every cache hit and compare the programs' texts. `LTC_CHECK_CACHE`; off.
    pub check_cache: bool,
    /// Take every operator to be able to fail, not only those whose values can make it: for backends that fail for
    /// other reasons, as tests make them. `LTC_ASSUME_FAULTS`; off.
    pub assume_faults: bool,
    /// Operators that shall run eagerly, by name with overload. `LTC_FORCE_FALLBACK`, comma-separated; none.
    pub force_fallback: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_pending_nodes: 100_000,
            max_retained_bytes: 256 << 20,
            cache_entries: 1024,
            cache_bytes: 256 << 20,
            queue_depth: 2,
            async_execution: true,
            inline_execution: true,
            overlap: true,
            recording: Duration::from_nanos(1500),
            reuse_nodes: true,
            donation: true,
            slice_params: true,
            symbolic: true,
            check_cache: false,
            assume_faults: false,
            force_fallback: Vec::new(),
        }
    }
}

impl Config {
    /// The defaults, changed by `LTC_*` environment variables ([`crate::settings`]). One that makes no sense is an
    /// error.
    ///
    /// # Errors
    /// Fails where a variable says what it may not; names it, its value, and what it may say.
    pub fn from_env() -> Result<Self, BadSetting> {
        Environment::from_env().map(|vars| Self::from_vars(&vars))
    }

    /// The defaults, changed by these variables.
    pub fn from_vars(vars: &Environment) -> Self {
        let d = Config::default();
        let number = |name: &str, default: usize| vars.number(name).unwrap_or(default);
        let switch = |name: &str, default: bool| vars.switch(name).unwrap_or(default);
        let words = |list: &str| list.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        Config {
            max_pending_nodes: number("LTC_MAX_PENDING_NODES", d.max_pending_nodes),
            max_retained_bytes: number("LTC_MAX_RETAINED_BYTES", d.max_retained_bytes),
            cache_entries: number("LTC_CACHE_ENTRIES", d.cache_entries),
            cache_bytes: number("LTC_CACHE_BYTES", d.cache_bytes),
            queue_depth: number("LTC_QUEUE_DEPTH", d.queue_depth),
            async_execution: switch("LTC_ASYNC", d.async_execution),
            inline_execution: switch("LTC_INLINE", d.inline_execution),
            overlap: switch("LTC_OVERLAP", d.overlap),
            recording: d.recording,
            reuse_nodes: switch("LTC_REUSE_NODES", d.reuse_nodes),
            donation: switch("LTC_DONATION", d.donation),
            slice_params: switch("LTC_SLICE_PARAMS", d.slice_params),
            symbolic: switch("LTC_SYMBOLIC", d.symbolic),
            check_cache: switch("LTC_CHECK_CACHE", d.check_cache),
            assume_faults: switch("LTC_ASSUME_FAULTS", d.assume_faults),
            force_fallback: vars.text("LTC_FORCE_FALLBACK").map(words).unwrap_or_default(),
        }
    }
}
