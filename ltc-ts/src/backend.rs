//! The backend's face.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use ltc_backend::{Backend, BackendError, Buffer, DeviceIndex, Executable, HostTensor, MemoryInfo};
use ltc_ir::{Graph, Layout, LayoutRef};
use ltc_torch_sys::{Generator, Held};
use tch::Tensor;

use crate::{
    buffer::{TchBuffer, Usage},
    interp::{RunStats, TsExecutable},
    lower::Program,
};

/// libtorch on the CPU, with any number of devices: each has its own executor thread and program order.
#[derive(Debug)]
pub struct TsBackend {
    usage: Vec<Arc<Usage>>,
    steps: Arc<AtomicU64>,
    poisoned: Arc<AtomicU64>,
}

impl TsBackend {
    /// A backend with this many devices.
    pub fn new(devices: u16) -> Self {
        TsBackend {
            usage: (0..devices).map(|_| Arc::default()).collect(),
            steps: Arc::default(),
            poisoned: Arc::default(),
        }
    }

    fn usage(&self, device: DeviceIndex) -> Result<&Arc<Usage>, BackendError> {
        self.usage.get(usize::from(device.0)).ok_or_else(|| BackendError::NoSuchDevice {
            index: device.0,
            backend: self.name().into(),
            count: self.usage.len(),
        })
    }

    /// A buffer around a host tensor; the caller must not write into it afterwards.
    pub fn wrap(&self, device: DeviceIndex, host: Tensor) -> Result<Buffer, BackendError> {
        Ok(Buffer::new(TchBuffer::new(Held::Tensor(host), self.usage(device)?)))
    }

    /// A buffer around a generator state.
    pub fn wrap_generator(&self, device: DeviceIndex, state: Generator) -> Result<Buffer, BackendError> {
        Ok(Buffer::new(TchBuffer::new(Held::Generator(state), self.usage(device)?)))
    }

    /// Totals over all programs of this backend.
    pub fn run_stats(&self) -> RunStats {
        RunStats { steps: self.steps.load(Relaxed), poisoned: self.poisoned.load(Relaxed) }
    }
}

impl Backend for TsBackend {
    fn name(&self) -> &str {
        "ts"
    }

    fn device_count(&self) -> usize {
        self.usage.len()
    }

    fn compile(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        let program = Program::lower(graph)?;
        let usage = self.usage(device)?.clone();
        Ok(Arc::new(TsExecutable::new(program, usage, self.steps.clone(), self.poisoned.clone())))
    }

    fn upload(&self, device: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        let layout = &host.layout;
        let size = layout.storage_bytes();
        if host.bytes.len() != size {
            let got = host.bytes.len();
            return Err(BackendError::BufferMismatch(format!("{layout} takes {size} bytes, got {got}")));
        }
        // Element order in memory: as a flat tensor of the storage, then the strides over it.
        let elements = size / layout.dtype().size_of().max(1);
        let kind = kind_of(layout)?;
        let flat = Tensor::f_from_data_size(&host.bytes, &[elements as i64], kind).map_err(device_error)?;
        let strided = flat.f_as_strided(layout.sizes(), layout.strides(), 0).map_err(device_error)?;
        self.wrap(device, strided)
    }

    fn download(&self, _: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
        let tensor = tensor.ok_or_else(|| BackendError::BufferMismatch("not a tensor of this backend".into()))?;
        let (found, bytes) = ltc_torch_sys::host_bytes(&tensor)
            .ok_or_else(|| BackendError::BufferMismatch("not a dense host tensor".into()))?;
        if found != **layout {
            return Err(BackendError::BufferMismatch(format!("buffer is {found}, not {layout}")));
        }
        Ok(HostTensor { layout: layout.clone(), bytes: bytes.to_vec() })
    }

    fn memory(&self, device: DeviceIndex) -> MemoryInfo {
        self.usage(device).map(|u| u.info()).unwrap_or_default()
    }
}

fn device_error(e: tch::TchError) -> BackendError {
    BackendError::Device(e.to_string())
}

fn kind_of(layout: &Layout) -> Result<tch::Kind, BackendError> {
    use ltc_ir::DType::*;
    use tch::Kind;
    Ok(match layout.dtype() {
        U8 => Kind::Uint8,
        I8 => Kind::Int8,
        I16 => Kind::Int16,
        I32 => Kind::Int,
        I64 => Kind::Int64,
        F16 => Kind::Half,
        F32 => Kind::Float,
        F64 => Kind::Double,
        C32 => Kind::ComplexHalf,
        C64 => Kind::ComplexFloat,
        C128 => Kind::ComplexDouble,
        Bool => Kind::Bool,
        BF16 => Kind::BFloat16,
        other => return Err(BackendError::BufferMismatch(format!("{other} has no host form in tch"))),
    })
}
