//! The boxed kernel's calls, recorded in a session of `ltc-core`.

use std::sync::Arc;

use ltc_backend::{BackendError, DeviceIndex, MemoryReset};
use ltc_core::{Device, Marker, Session, Storage, TraceValue};
use ltc_eager_fallback::{Forced, Host};
use ltc_ir::{DType, FallbackReason, LayoutRef, Operands, ShapeError, SiteId, View};
use ltc_torch_sys::{
    DeviceMemory, EagerCall, EagerOperand, Generator, Place, RecordedCall, Recorder, Tensor, TorchError, at_place,
};
use ltc_ts::{TchBuffer, TsBackend};
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::{capture_log, draws::GENERATOR, error::to_torch, sites::Sites};

pub(crate) struct LtcRecorder {
    pub(crate) session: Arc<Session>,
    pub(crate) backend: Arc<TsBackend>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) generator_layout: LayoutRef,
    pub(crate) track_sites: bool,
    pub(crate) expect_calls: bool,
    pub(crate) small_probes: bool,
    pub(crate) forced: Arc<RwLock<Forced>>,
}

impl LtcRecorder {
    fn device(&self, index: u16) -> Result<&Device, TorchError> {
        self.session.device(index).map_err(to_torch)
    }

    fn site(&self) -> SiteId {
        if self.track_sites { self.sites.current() } else { SiteId::default() }
    }

    /// Where the program is, for a message: empty where nobody knows.
    fn at_line(&self, device: u16) -> String {
        let line = self.device(device).ok().and_then(|dev| dev.describe_site(self.site()));
        line.map(|line| format!(" ({line})")).unwrap_or_default()
    }

    fn tensor_of(value: &TraceValue, buffer: &ltc_backend::Buffer) -> Result<Tensor, TorchError> {
        let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
        tensor.ok_or_else(|| TorchError::runtime(format!("value {:?} has no tensor", value.op())))
    }

    fn import_value(&self, device: u16, given: Tensor, layout: LayoutRef) -> Result<TraceValue, TorchError> {
        let refused = |e: BackendError| TorchError { class: e.class(), message: e.to_string() };
        let buffer = self.backend.wrap(DeviceIndex(device), given).map_err(refused)?;
        let value = self.device(device)?.import(layout, buffer);
        capture_log::uploaded(&value);
        Ok(value)
    }
}

impl Recorder for LtcRecorder {
    type Storage = Storage;
    type Event = Marker;

    fn storage_uninit(&self, device: u16, layout: LayoutRef) -> Storage {
        Storage::uninit(self.session.device(device).ok(), layout)
    }

    fn storage_bytes(&self, device: u16, nbytes: usize) -> Storage {
        Storage::with_bytes(self.session.device(device).ok(), nbytes)
    }

    fn touched(&self, storage: &Storage) {
        capture_log::touched(storage);
    }

    fn share(&self, device: u16, dst: &Storage, src: &Storage, view: View<'_>) {
        if let Ok(dev) = self.device(device) {
            dst.share(dev, src, view, SiteId::default());
        }
    }

    fn resize(&self, device: u16, storage: &Storage, nbytes: usize) {
        if let Ok(dev) = self.device(device) {
            storage.resize(dev, nbytes, SiteId::default());
        }
    }

    fn record(&self, call: &RecordedCall<'_, Storage>) -> Result<SmallVec<[Storage; 2]>, TorchError> {
        let refused = |e: ShapeError| TorchError { class: e.class, message: e.message };
        call.signature.check_numbers(call.numbers).map_err(refused)?;
        let dev = self.device(call.device)?;
        let site = self.site();
        let mut operands = Operands::new();
        let mut written: SmallVec<[_; 4]> = SmallVec::new();
        let mut generator = None;
        for o in call.operands() {
            let view = o.view;
            if !o.fresh {
                operands.push(o.storage.read(dev, view, site));
            }
            if view.dtype == DType::RngState {
                generator = Some(o.storage);
            } else if o.written {
                written.push((o.storage, view));
            }
        }
        let (signature, numbers) = (call.signature, SmallVec::from_slice(call.numbers));
        if written.is_empty() && signature.results().len() == 1 {
            let value = dev.record(signature, operands, numbers, site);
            return Ok(SmallVec::from_iter([Storage::with_value(value)]));
        }
        let mut values = dev.record_results(signature, operands, numbers, site).into_iter();
        for ((storage, view), value) in written.into_iter().zip(values.by_ref()) {
            storage.write(dev, view, value, site);
        }
        let new = values.by_ref().take(call.new_count).map(Storage::with_value).collect();
        if let Some((generator, state)) = generator.zip(values.next()) {
            generator.write(dev, GENERATOR, state, site);
        }
        Ok(new)
    }

    fn assign(&self, device: u16, dst: (&Storage, View<'_>), src: (&Storage, View<'_>)) -> Result<(), TorchError> {
        let dev = self.device(device)?;
        let value = src.0.read(dev, src.1, SiteId::default());
        dst.0.write(dev, dst.1, value, SiteId::default());
        Ok(())
    }

    fn import(&self, device: u16, given: Tensor, layout: LayoutRef) -> Result<Storage, TorchError> {
        Ok(Storage::with_value(self.import_value(device, given, layout)?))
    }

    fn import_into(&self, device: u16, dst: (&Storage, View<'_>), given: Tensor) -> Result<(), TorchError> {
        let value = self.import_value(device, given, dst.1.layout().into())?;
        dst.0.write(self.device(device)?, dst.1, value, SiteId::default());
        Ok(())
    }

    fn to_host(&self, device: u16, src: (&Storage, View<'_>)) -> Result<Tensor, TorchError> {
        let dev = self.device(device)?;
        let value = src.0.read(dev, src.1, SiteId::default());
        let buffer = capture_log::read(dev, &value, self.site()).map_err(to_torch)?;
        at_place(&Self::tensor_of(&value, &buffer)?, Place::Cpu)
    }

    fn fallback(&self, call: EagerCall<'_, Storage>) -> Result<(), TorchError> {
        capture_log::obstacle(|| format!("{} runs eagerly{}", call.op(), self.at_line(call.device())));
        ltc_eager_fallback::run(self, call)
    }

    fn takes_sparse(&self, device: u16, op: &str) {
        capture_log::obstacle(|| format!("{op} takes or makes a sparse tensor{}", self.at_line(device)));
    }

    fn expects_calls(&self) -> bool {
        self.expect_calls
    }

    fn probes_small(&self) -> bool {
        self.small_probes
    }

    fn forces_fallback(&self, op: &str) -> bool {
        self.forced.read().contains(op)
    }

    fn seed(&self, device: u16, generator: &Storage, seed: u64) -> Result<(), TorchError> {
        capture_log::obstacle(|| "it seeds a generator".into());
        self.device(device)?.seed(generator, seed, SiteId::default());
        Ok(())
    }

    fn generator_state(&self, device: u16, generator: &Storage) -> Result<Generator, TorchError> {
        let dev = self.device(device)?;
        let value = generator.read(dev, GENERATOR, SiteId::default());
        let buffers = dev.values_alone(std::slice::from_ref(&value)).map_err(to_torch)?;
        let state = buffers.first().and_then(|b| b.get::<TchBuffer>()).and_then(TchBuffer::generator);
        state.ok_or_else(|| TorchError::runtime("not a generator state"))?
    }

    fn set_generator_state(&self, device: u16, generator: &Storage, state: Generator) -> Result<(), TorchError> {
        let buffer = self.backend.wrap_generator(DeviceIndex(device), state);
        let buffer = buffer.map_err(|e| TorchError::runtime(e.to_string()))?;
        let dev = self.device(device)?;
        generator.set(dev, dev.import(self.generator_layout.clone(), buffer));
        Ok(())
    }

    fn keep_failures(storage: &Storage) {
        storage.keep_failures();
    }

    fn others_wait(&self, device: u16) {
        if let Ok(dev) = self.device(device) {
            dev.others_wait(capture_log::is_nobodys_turn);
        }
    }

    fn synchronize(&self, device: u16) -> Result<(), TorchError> {
        let dev = self.device(device)?;
        dev.sync().map_err(to_torch)?;
        dev.wait().map_err(to_torch)
    }

    fn is_idle(&self, device: u16) -> Result<bool, TorchError> {
        Ok(self.device(device)?.deferred_marker().is_reached())
    }

    fn record_event(&self, device: u16, timed: bool) -> Result<Marker, TorchError> {
        capture_log::obstacle(|| "it records an event".into());
        let dev = self.device(device)?;
        if timed { dev.marker().map_err(to_torch) } else { Ok(dev.deferred_marker()) }
    }

    fn is_reached(event: &Marker) -> bool {
        event.is_reached()
    }

    fn wait_for(event: &Marker) -> Result<(), TorchError> {
        event.wait().map_err(to_torch)
    }

    fn seconds_between(from: &Marker, to: &Marker) -> Option<f64> {
        to.seconds_since(from)
    }

    fn memory(&self, device: u16) -> Result<DeviceMemory, TorchError> {
        let index = self.device(device)?.index();
        let (memory, capacity) = (self.session.memory(index), self.session.capacity(index).unwrap_or_default());
        Ok(DeviceMemory {
            used: memory.used as u64,
            peak: memory.peak as u64,
            taken: memory.taken as u64,
            freed: memory.freed as u64,
            reserved: memory.reserved() as u64,
            reserved_peak: memory.reserved_peak as u64,
            available: capacity.available as u64,
            total: capacity.total as u64,
        })
    }

    fn reset_memory_peaks(&self, device: u16) -> Result<(), TorchError> {
        self.session.reset_memory(self.device(device)?.index(), MemoryReset::Peaks);
        Ok(())
    }

    fn reset_memory_sums(&self, device: u16) -> Result<(), TorchError> {
        self.session.reset_memory(self.device(device)?.index(), MemoryReset::Sums);
        Ok(())
    }

    fn release_memory(&self) -> Result<(), TorchError> {
        for device in self.session.devices() {
            device.wait().map_err(to_torch)?;
        }
        crate::release_memory(&self.backend)
    }
}

impl Host<Storage> for LtcRecorder {
    fn note(&self, device: u16, op: &str, reason: FallbackReason) {
        if let Ok(dev) = self.device(device) {
            dev.note_fallback(op, reason);
        }
    }

    fn values(&self, device: u16, operands: &[EagerOperand<'_, Storage>]) -> Result<Vec<Tensor>, TorchError> {
        let dev = self.device(device)?;
        let values: Vec<TraceValue> = operands.iter().map(|o| o.storage.read(dev, o.view, SiteId::default())).collect();
        let buffers = dev.values_alone(&values).map_err(to_torch)?;
        values.iter().zip(&buffers).map(|(v, b)| Self::tensor_of(v, b)).collect()
    }
}
