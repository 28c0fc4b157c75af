//! The contract, implemented: devices, transfers, compiling.

use std::sync::Arc;

use ltc_backend::{
    Backend, BackendError, Buffer, Capacity, DeviceIndex, Executable, Fence, HostTensor, MemoryInfo, MemoryReset,
};
use ltc_ir::{DType, Graph, Layout, LayoutRef};
use ltc_torch_sys::{Generator, Held, Place, Tensor, TorchError, at_place, pool_stats, set_pool_limit};
use parking_lot::Mutex;

use crate::{
    config::TsConfig,
    exec::{
        Meter, Profile, RunStats, StepTime, TchBuffer, TsExecutable,
        buffer::{tensor_from_bytes, tensor_to_bytes, wrap},
        fence,
    },
    host,
    program::Program,
    target::Target,
};

/// Runs graphs with libtorch.
#[derive(Debug)]
pub struct TsBackend {
    /// Threads of kernels on an executor thread ([`TsConfig::threads`]).
    threads: Option<u16>,
    devices: Vec<TsDevice>,
    stats: Arc<Mutex<RunStats>>,
    profile: Arc<Profile>,
}

/// One device.
#[derive(Debug)]
struct TsDevice {
    target: Target,
    meter: Arc<Meter>,
}

fn bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn lost(error: TorchError) -> BackendError {
    BackendError::Refused { class: error.class, message: error.message }
}

impl TsBackend {
    /// A backend with this many devices on the CPU and the default settings.
    pub fn new(devices: u16) -> Self {
        let places = vec![Place::Cpu; devices.into()];
        TsBackend::with_config(TsConfig { places, ..TsConfig::default() })
    }

    /// A backend with these settings. Its places must have been [checked](Place::check).
    pub fn with_config(config: TsConfig) -> Self {
        // Without a pool everything works as well, with libtorch's allocator.
        let _ = set_pool_limit(config.pool_bytes);
        TsBackend {
            devices: (config.places.iter())
                .map(|&place| TsDevice { target: Target::new(&config, place), meter: Arc::default() })
                .collect(),
            threads: config.threads,
            stats: Arc::default(),
            profile: Arc::default(),
        }
    }

    fn device(&self, device: DeviceIndex) -> Result<&TsDevice, BackendError> {
        self.devices.get(usize::from(device.0)).ok_or_else(|| BackendError::NoSuchDevice {
            index: device.0,
            backend: self.name().into(),
            count: self.devices.len(),
        })
    }

    /// Where a device computes.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    pub fn place(&self, device: DeviceIndex) -> Result<Place, BackendError> {
        Ok(self.device(device)?.target.place)
    }

    /// [`Backend::compile`] with its own type, which also tells what its executions did.
    ///
    /// # Errors
    /// Fails for a device that there is not, and as [`Program::lower`].
    pub fn compile_program(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<TsExecutable>, BackendError> {
        let TsDevice { target, meter } = self.device(device)?;
        let program = Program::lower_for(graph, target).or_else(|e| match target.place {
            Place::Cpu => Err(e),
            // Where some kernel has no text for GPUs, libtorch's are all there are.
            Place::Cuda(_) => Program::lower_for(graph, &target.unfused()),
        })?;
        let (profile, total) = (self.profile.clone(), self.stats.clone());
        Ok(Arc::new(TsExecutable::new(program, target.clone(), meter.clone(), profile, total)))
    }

    /// A buffer around a tensor, without copying it where it is at the device's place. It may start anywhere in its
    /// storage; from now on nobody may write to it.
    ///
    /// # Errors
    /// Fails for a device that there is not, for a tensor that is not dense, and where the copy to the device's place
    /// fails.
    pub fn wrap(&self, device: DeviceIndex, given: impl Into<Tensor>) -> Result<Buffer, BackendError> {
        let (TsDevice { target, meter }, mut tensor) = (self.device(device)?, given.into());
        let (place, layout) = ltc_torch_sys::place_of(&tensor)
            .ok_or_else(|| BackendError::BufferMismatch("only dense tensors can become buffers".into()))?;
        if !(place.is_cpu() && target.place.is_cpu()) {
            tensor = at_place(&tensor, target.place).map_err(lost)?;
        }
        let bytes = layout.storage_bytes();
        Ok(wrap(Held::Tensor(tensor), &layout.into(), meter, bytes))
    }

    /// A buffer around a host tensor that its owner only lends, for a device on the CPU: its memory is not counted.
    /// Nobody may write to it while the buffer lives.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    pub fn lend(&self, device: DeviceIndex, host: Tensor, layout: &LayoutRef) -> Result<Buffer, BackendError> {
        Ok(wrap(Held::Tensor(host), layout, &self.device(device)?.meter, 0))
    }

    /// A buffer around a generator state.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    pub fn wrap_generator(&self, device: DeviceIndex, state: Generator) -> Result<Buffer, BackendError> {
        let layout = LayoutRef::new(Layout::contiguous(DType::RngState, &[]));
        Ok(wrap(Held::Generator(state), &layout, &self.device(device)?.meter, 0))
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
        self.devices.len()
    }

    fn compile(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(self.compile_program(device, graph)?)
    }

    fn upload(&self, device: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        let TsDevice { target, meter } = self.device(device)?;
        let tensor = at_place(&tensor_from_bytes(&host.layout, &host.bytes)?, target.place).map_err(lost)?;
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
        let part = ltc_torch_sys::part_of(base, layout, offset);
        let part = part.map_err(|e| BackendError::BufferMismatch(e.message))?;
        // Its memory is counted as the buffer's.
        Ok(wrap(Held::Tensor(part), layout, &self.device(device)?.meter, 0))
    }

    fn download(&self, device: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        self.device(device)?;
        let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
        let tensor = tensor.ok_or_else(|| BackendError::BufferMismatch("not a tensor of this backend".into()))?;
        let tensor = at_place(&tensor, Place::Cpu).map_err(lost)?;
        Ok(HostTensor { layout: layout.clone(), bytes: tensor_to_bytes(&tensor, layout)? })
    }

    /// libtorch keeps a number of threads per thread, on which bits of results depend.
    fn thread_state(&self) -> u64 {
        self.threads.map_or_else(|| ltc_torch_sys::num_threads() as u64, u64::from)
    }

    fn attach_executor_thread(&self, _device: DeviceIndex, state: u64) {
        ltc_torch_sys::set_num_threads(usize::try_from(state).unwrap_or(1));
    }

    fn fence(&self, device: DeviceIndex) -> Option<Arc<dyn Fence>> {
        fence(self.place(device).ok()?)
    }

    /// CPU kernels are done when they return, so there is nothing to wait for; elsewhere they are under way.
    fn synchronize(&self, device: DeviceIndex) -> Result<(), BackendError> {
        self.place(device)?.wait().map_err(lost)
    }

    fn memory(&self, device: DeviceIndex) -> MemoryInfo {
        let Ok(TsDevice { target, meter }) = self.device(device) else { return MemoryInfo::default() };
        let cached = match target.place {
            Place::Cpu => pool_stats().cached,
            place => place.memory().map_or(0, |memory| bytes(memory.cached)),
        };
        meter.info(cached)
    }

    fn reset_memory(&self, device: DeviceIndex, what: MemoryReset) {
        if let Ok(device) = self.device(device) {
            device.meter.reset(what);
        }
    }

    fn capacity(&self, device: DeviceIndex) -> Option<Capacity> {
        match self.place(device).ok()? {
            Place::Cpu => host::capacity(),
            place => {
                let memory = place.memory().ok()?;
                Some(Capacity { available: bytes(memory.available), total: bytes(memory.total) })
            }
        }
    }

    fn device_name(&self, device: DeviceIndex) -> String {
        match self.place(device) {
            Ok(place) if !place.is_cpu() => place.to_string(),
            _ => host::name(),
        }
    }
}
