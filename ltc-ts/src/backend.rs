//! The contract, implemented: devices, transfers, compiling.

use std::sync::Arc;

use ltc_backend::{
    Backend, BackendError, Buffer, Capacity, DeviceIndex, Executable, HostTensor, MemoryInfo, MemoryReset,
};
use ltc_ir::{DType, Graph, Layout, LayoutRef};
use ltc_torch_sys::{Generator, Held, Tensor, pool_stats, set_pool_limit};
use parking_lot::Mutex;

use crate::{
    config::TsConfig,
    exec::{
        Meter, Profile, RunStats, StepTime, TchBuffer, TsExecutable,
        buffer::{tensor_from_bytes, tensor_to_bytes, wrap},
    },
    host,
    program::Program,
};

/// Runs graphs with libtorch.
#[derive(Debug)]
pub struct TsBackend {
    config: TsConfig,
    meters: Vec<Arc<Meter>>,
    stats: Arc<Mutex<RunStats>>,
    profile: Arc<Profile>,
}

impl TsBackend {
    /// A backend with this many devices and the default settings.
    pub fn new(devices: u16) -> Self {
        TsBackend::with_config(TsConfig { devices, ..TsConfig::default() })
    }

    /// A backend with these settings.
    pub fn with_config(config: TsConfig) -> Self {
        // Without a pool everything works as well, with libtorch's allocator.
        let _ = set_pool_limit(config.pool_bytes);
        TsBackend {
            meters: (0..config.devices).map(|_| Arc::default()).collect(),
            config,
            stats: Arc::default(),
            profile: Arc::default(),
        }
    }

    fn meter(&self, device: DeviceIndex) -> Result<&Arc<Meter>, BackendError> {
        self.meters.get(usize::from(device.0)).ok_or_else(|| BackendError::NoSuchDevice {
            index: device.0,
            backend: self.name().into(),
            count: self.meters.len(),
        })
    }

    /// [`Backend::compile`] with its own type, which also tells what its executions did.
    pub fn compile_program(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<TsExecutable>, BackendError> {
        let meter = self.meter(device)?.clone();
        let program = Program::lower(graph, &self.config)?;
        let (profile, total) = (self.profile.clone(), self.stats.clone());
        Ok(Arc::new(TsExecutable::new(program, self.config.clone(), meter, profile, total)))
    }

    /// A buffer around a host tensor, without copying it. It may start anywhere in its storage; from now on nobody may
    /// write to it.
    pub fn wrap(&self, device: DeviceIndex, host: impl Into<Tensor>) -> Result<Buffer, BackendError> {
        let (meter, host) = (self.meter(device)?, host.into());
        let (layout, bytes) = ltc_torch_sys::host_bytes(&host)
            .map(|(layout, bytes)| (LayoutRef::new(layout), bytes.len()))
            .ok_or_else(|| BackendError::BufferMismatch("only dense host tensors can become buffers".into()))?;
        Ok(wrap(Held::Tensor(host), &layout, meter, bytes))
    }

    /// A buffer around a host tensor that its owner only lends: its memory is not counted. Nobody may write to it while
    /// the buffer lives.
    pub fn lend(&self, device: DeviceIndex, host: Tensor, layout: &LayoutRef) -> Result<Buffer, BackendError> {
        Ok(wrap(Held::Tensor(host), layout, self.meter(device)?, 0))
    }

    /// A buffer around a generator state.
    pub fn wrap_generator(&self, device: DeviceIndex, state: Generator) -> Result<Buffer, BackendError> {
        let layout = LayoutRef::new(Layout::contiguous(DType::RngState, &[]));
        Ok(wrap(Held::Generator(state), &layout, self.meter(device)?, 0))
    }

    /// What all programs of this backend did.
    pub fn run_stats(&self) -> RunStats {
        *self.stats.lock()
    }

    /// Starts or stops timing the steps of all programs.
    pub fn set_profiling(&self, on: bool) {
        self.profile.switch(on);
    }

    /// The steps timed since the last call, those that took longest first.
    pub fn take_profile(&self) -> Vec<StepTime> {
        self.profile.take()
    }
}

impl Backend for TsBackend {
    fn name(&self) -> &str {
        "ts"
    }

    fn device_count(&self) -> usize {
        self.meters.len()
    }

    fn compile(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(self.compile_program(device, graph)?)
    }

    fn upload(&self, device: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        let meter = self.meter(device)?;
        let tensor = tensor_from_bytes(&host.layout, &host.bytes)?;
        Ok(wrap(Held::Tensor(tensor), &host.layout, meter, host.bytes.len()))
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(
        &self,
        device: DeviceIndex,
        buffer: &Buffer,
        layout: &LayoutRef,
        offset: i64,
    ) -> Result<Buffer, BackendError> {
        let base = buffer.get::<TchBuffer>().map(TchBuffer::held);
        let Some(Held::Tensor(base)) = base else {
            return Err(BackendError::BufferMismatch("not a tensor of this backend".into()));
        };
        let part = ltc_torch_sys::host_part(base, layout, offset);
        let part = part.map_err(|e| BackendError::BufferMismatch(e.message))?;
        // Its memory is counted as the buffer's.
        Ok(wrap(Held::Tensor(part), layout, self.meter(device)?, 0))
    }

    fn download(&self, device: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        self.meter(device)?;
        let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
        let tensor = tensor.ok_or_else(|| BackendError::BufferMismatch("not a tensor of this backend".into()))?;
        Ok(HostTensor { layout: layout.clone(), bytes: tensor_to_bytes(&tensor, layout)? })
    }

    /// libtorch keeps a number of threads per thread, on which bits of results depend.
    fn thread_state(&self) -> u64 {
        self.config.threads.map_or_else(|| ltc_torch_sys::num_threads() as u64, u64::from)
    }

    fn attach_executor_thread(&self, _device: DeviceIndex, state: u64) {
        ltc_torch_sys::set_num_threads(usize::try_from(state).unwrap_or(1));
    }

    /// CPU kernels are done when they return, so there is nothing to wait for.
    fn synchronize(&self, device: DeviceIndex) -> Result<(), BackendError> {
        self.meter(device).map(drop)
    }

    fn memory(&self, device: DeviceIndex) -> MemoryInfo {
        self.meter(device).map(|m| m.info(pool_stats().cached)).unwrap_or_default()
    }

    fn reset_memory(&self, device: DeviceIndex, what: MemoryReset) {
        if let Ok(meter) = self.meter(device) {
            meter.reset(what);
        }
    }

    fn capacity(&self, device: DeviceIndex) -> Option<Capacity> {
        self.meter(device).ok().and_then(|_| host::capacity())
    }

    fn device_name(&self, _device: DeviceIndex) -> String {
        host::name()
    }
}
