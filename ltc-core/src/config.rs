//! The one configuration of a session.

use std::env;

/// Settings of a session. Every optimisation has its switch here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Pending operations at which the graph is cut by itself. `LTC_MAX_PENDING_NODES`; 100,000, as LTC's
    /// `torch_lazy_trim_graph_size`.
    pub max_pending_nodes: usize,
    /// Bytes of device memory that only pending operations hold (the program dropped the tensors) at which the graph is
    /// cut by itself. `LTC_MAX_RETAINED_BYTES`; 1 GiB.
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
    /// Run programs that could use every processor on one, beside their caller, where steps are faster so, by their own measured
    /// times. `LTC_OVERLAP`; on.
    pub overlap: bool,
    /// Record a step into the nodes of the last one (LTC: `torch_lazy_reuse_ir`). `LTC_REUSE_NODES`; on.
    pub reuse_nodes: bool,
    /// Let programs reuse the memory of inputs nobody holds any more. `LTC_DONATION`; on.
    pub donation: bool,
    /// Take dense parts of data (a batch, as a slice of a data set) as parameters of programs, so that the same program
    /// serves them wherever they begin. `LTC_PARTS`; on.
    pub parts: bool,
    /// Let a compiled program serve graphs that differ from its own in nothing but sizes. `LTC_SYMBOLIC`, `off` or `auto`;
    /// on.
    pub symbolic: bool,
    /// Compile again on every cache hit and compare the programs' texts. `LTC_CHECK_CACHE`; off.
    pub check_cache: bool,
    /// Take every operator to be able to fail, not only those whose values can make it: for backends that fail for other
    /// reasons, as tests make them. `LTC_ASSUME_FAULTS`; off.
    pub assume_faults: bool,
    /// Operators that shall run eagerly, by name with overload. `LTC_FORCE_FALLBACK`, comma-separated; none.
    pub force_fallback: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_pending_nodes: 100_000,
            max_retained_bytes: 1 << 30,
            cache_entries: 1024,
            cache_bytes: 256 << 20,
            queue_depth: 2,
            async_execution: true,
            inline_execution: true,
            overlap: true,
            reuse_nodes: true,
            donation: true,
            parts: true,
            symbolic: true,
            check_cache: false,
            assume_faults: false,
            force_fallback: Vec::new(),
        }
    }
}

impl Config {
    /// The defaults, changed by `LTC_*` environment variables. A value that does not parse is reported as a warning and
    /// leaves the default.
    pub fn from_env() -> Self {
        Self::from_vars(|name| env::var(name).ok())
    }

    fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let mut c = Config::default();
        let number = |name: &str, into: &mut usize| {
            if let Some(text) = var(name) {
                match text.trim().parse() {
                    Ok(n) => *into = n,
                    Err(_) => tracing::warn!("{name}={text} is not a number; keeping {into}"),
                }
            }
        };
        number("LTC_MAX_PENDING_NODES", &mut c.max_pending_nodes);
        number("LTC_MAX_RETAINED_BYTES", &mut c.max_retained_bytes);
        number("LTC_CACHE_ENTRIES", &mut c.cache_entries);
        number("LTC_CACHE_BYTES", &mut c.cache_bytes);
        number("LTC_QUEUE_DEPTH", &mut c.queue_depth);
        let switch = |name: &str, into: &mut bool| {
            if let Some(text) = var(name) {
                match text.trim() {
                    "1" | "true" | "on" | "auto" => *into = true,
                    "0" | "false" | "off" => *into = false,
                    _ => tracing::warn!("{name}={text} is neither 0 nor 1; keeping {into}"),
                }
            }
        };
        switch("LTC_ASYNC", &mut c.async_execution);
        switch("LTC_INLINE", &mut c.inline_execution);
        switch("LTC_OVERLAP", &mut c.overlap);
        switch("LTC_REUSE_NODES", &mut c.reuse_nodes);
        switch("LTC_DONATION", &mut c.donation);
        switch("LTC_PARTS", &mut c.parts);
        switch("LTC_SYMBOLIC", &mut c.symbolic);
        switch("LTC_CHECK_CACHE", &mut c.check_cache);
        switch("LTC_ASSUME_FAULTS", &mut c.assume_faults);
        if let Some(list) = var("LTC_FORCE_FALLBACK") {
            c.force_fallback = list.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        }
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrides_defaults_and_nonsense_does_not() {
        let c = Config::from_vars(|name| match name {
            "LTC_MAX_PENDING_NODES" => Some("7".into()),
            "LTC_QUEUE_DEPTH" => Some("many".into()),
            "LTC_ASYNC" => Some("0".into()),
            "LTC_DONATION" => Some("maybe".into()),
            "LTC_SYMBOLIC" => Some("off".into()),
            "LTC_FORCE_FALLBACK" => Some("aten::mm, aten::add.Tensor,".into()),
            _ => None,
        });
        assert_eq!(c.max_pending_nodes, 7);
        assert_eq!(c.queue_depth, Config::default().queue_depth);
        assert!(!c.async_execution && c.donation && !c.symbolic);
        assert_eq!(c.force_fallback, ["aten::mm", "aten::add.Tensor"]);
    }
}
