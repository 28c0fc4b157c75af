//! The recording side: what libtorch's dispatcher calls, as a safe trait.

use ltc_ir::{ArgFlags, DType, LayoutRef, SignatureRef, View};
use smallvec::SmallVec;

use crate::{eager::EagerCall, error::TorchError, ffi, handle::Tensor, memory::DeviceMemory, plan::Generator, tensor};

/// One tensor or generator argument of a recorded call, in order of appearance.
#[derive(Debug)]
pub struct Operand<'a, S> {
    /// Its storage; a generator's state is a storage too.
    pub storage: &'a S,
    /// What of it the tensor shows; `RngState` of rank 0 for generators.
    pub view: View<'a>,
    /// The operator writes it: its new value is one of the results.
    pub written: bool,
    /// Its old contents do not matter: it is no operand of the recorded node, only written.
    pub fresh: bool,
}

/// A call to record.
#[derive(Debug)]
pub struct RecordedCall<'a, S> {
    /// Operator, structural arguments and result layouts; the same object for equal calls of a thread.
    pub signature: &'a SignatureRef,
    /// Runtime numbers.
    pub numbers: &'a [u64],
    /// Device.
    pub device: u16,
    /// How many results are new tensors; they stand after the written arguments in the signature.
    pub new_count: usize,
    raw_operands: &'a [ffi::LtcOperand],
    storage: std::marker::PhantomData<&'a S>,
}

impl<'a, S> RecordedCall<'a, S> {
    /// # Safety
    /// All pointers of the record must be valid for `'a`, with the lengths beside them; the operands' slots must hold
    /// `S`, and `signature` must be the record's.
    pub(crate) unsafe fn new(raw: &'a ffi::LtcRecord, signature: &'a SignatureRef) -> Self {
        // SAFETY: by this function's contract.
        let (numbers, raw_operands) = unsafe {
            (tensor::slice(raw.numbers, raw.nnumbers as usize), tensor::slice(raw.operands, raw.noperands as usize))
        };
        let (device, new_count) = (raw.device as u16, raw.nfresh as usize);
        RecordedCall { signature, numbers, device, new_count, raw_operands, storage: std::marker::PhantomData }
    }

    /// Tensor and generator arguments, in order of appearance.
    #[inline]
    pub fn operands(&self) -> impl ExactSizeIterator<Item = Operand<'a, S>> + use<'a, S> {
        self.raw_operands.iter().map(|op| {
            // SAFETY: C++ passes slots that hold `S` and dims that live in their tensors for the call (`'a`).
            let (storage, view) = unsafe { (&*op.slot.cast::<S>(), tensor::view_of(op)) };
            // Tensors of other dtypes cannot come to the device: `layout_new` refuses them.
            let view = view.unwrap_or(View { dtype: DType::U8, sizes: &[], strides: &[], offset: 0 });
            let flags = ArgFlags(op.flags);
            Operand { storage, view, written: flags.has(ArgFlags::MUT), fresh: flags.has(ArgFlags::FRESH) }
        })
    }
}

/// Storages of new results.
pub type NewStorages<S> = SmallVec<[S; 2]>;

/// Receives everything the dispatcher sends to the lazy device.
///
/// Called from any thread, concurrently, with no lock of libtorch's dispatcher held. Implementations must not call back
/// into operators on lazy tensors while they hold locks of their own.
pub trait Recorder: Send + Sync + 'static {
    /// What a tensor's storage holds; lives inside the C++ storage object. At most 56 bytes, alignment at most 8.
    type Storage: Send + Sync + 'static;

    /// A moment in a device's work.
    type Event: Send + Sync + 'static;

    /// A storage nobody wrote yet.
    fn storage_uninit(&self, device: u16, layout: LayoutRef) -> Self::Storage;

    /// A storage of this many bytes nobody wrote yet and whose layout is unknown.
    fn storage_bytes(&self, device: u16, nbytes: usize) -> Self::Storage;

    /// `dst` takes over the contents of `src`, of which `view` is all.
    fn share(&self, device: u16, dst: &Self::Storage, src: &Self::Storage, view: View<'_>);

    /// Grows (or shrinks) a storage, keeping contents at the front.
    fn resize(&self, device: u16, storage: &Self::Storage, nbytes: usize);

    /// Records a call: updates the storages of written operands, returns those of new results.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn record(&self, call: &RecordedCall<'_, Self::Storage>) -> Result<NewStorages<Self::Storage>, TorchError>;

    /// A view's value becomes another view's; both have equal dtype, sizes and strides.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn assign(
        &self,
        device: u16,
        dst: (&Self::Storage, View<'_>),
        src: (&Self::Storage, View<'_>),
    ) -> Result<(), TorchError>;

    /// Takes a dense tensor of this layout, on the host or at the device's place, as a storage's contents.
    ///
    /// # Errors
    /// Fails for a device that there is not, and for a tensor that cannot be brought to its place.
    fn import(&self, device: u16, given: Tensor, layout: LayoutRef) -> Result<Self::Storage, TorchError>;

    /// The same, as the new value of a view of equal dtype, sizes and strides.
    ///
    /// # Errors
    /// As [`Recorder::import`].
    fn import_into(&self, device: u16, dst: (&Self::Storage, View<'_>), given: Tensor) -> Result<(), TorchError>;

    /// The current value of a view on the host: a sync point and a wait for this value.
    ///
    /// # Errors
    /// Fails for a device that there is not, and with what an operation that the value needs failed with.
    fn to_host(&self, device: u16, src: (&Self::Storage, View<'_>)) -> Result<Tensor, TorchError>;

    /// Runs a call eagerly.
    ///
    /// # Errors
    /// Fails as the operator itself does, and with what an operation that an operand needs failed with.
    fn fallback(&self, call: EagerCall<'_, Self::Storage>) -> Result<(), TorchError>;

    /// Whether a call is compared with the one that came next the last time before it is looked up. Asked once.
    fn expects_calls(&self) -> bool;

    /// Whether elementwise kernels that are asked for their results' layouts run on one element where that tells as
    /// much as all of them. Asked once.
    fn probes_small(&self) -> bool;

    /// Whether an operator shall never be recorded. Asked once per operator.
    fn forces_fallback(&self, op: &str) -> bool;

    /// Sets a generator's state by seed.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn seed(&self, device: u16, generator: &Self::Storage, seed: u64) -> Result<(), TorchError>;

    /// A copy of a generator's current state: a sync point and a wait.
    ///
    /// # Errors
    /// Fails for a device that there is not, and with what an operation that the state needs failed with.
    fn generator_state(&self, device: u16, generator: &Self::Storage) -> Result<Generator, TorchError>;

    /// Sets a generator's state.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn set_generator_state(&self, device: u16, generator: &Self::Storage, state: Generator) -> Result<(), TorchError>;

    /// Writes to this storage that fail are not undone.
    fn keep_failures(storage: &Self::Storage);

    /// Other processes wait for something that is recorded, so it has to be sent even if this process does nothing
    /// more.
    fn others_wait(&self, device: u16);

    /// Runs what is recorded and waits until the device is idle.
    ///
    /// # Errors
    /// Fails for a device that there is not, and with what an operation failed with that nobody was told of yet.
    fn synchronize(&self, device: u16) -> Result<(), TorchError>;

    /// Sends what is recorded, without waiting, and says whether all of it has run.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn is_idle(&self, device: u16) -> Result<bool, TorchError>;

    /// An event behind all that is recorded. `timed`: the recorded operations are sent now, so that the event's time
    /// does not include later ones. Otherwise they may be sent when somebody asks for the event.
    ///
    /// # Errors
    /// Fails for a device that there is not, and where what is sent does not compile.
    fn record_event(&self, device: u16, timed: bool) -> Result<Self::Event, TorchError>;

    /// Whether the device has passed an event. Does not wait for it.
    fn is_reached(event: &Self::Event) -> bool;

    /// Waits until the device has passed an event.
    ///
    /// # Errors
    /// Fails where the wait is interrupted, or the device is lost.
    fn wait_for(event: &Self::Event) -> Result<(), TorchError>;

    /// From one event to another; `None` while the device has not passed both.
    fn seconds_between(from: &Self::Event, to: &Self::Event) -> Option<f64>;

    /// Memory of a device.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn memory(&self, device: u16) -> Result<DeviceMemory, TorchError>;

    /// Has the highest values of a device's memory begin anew.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn reset_memory_peaks(&self, device: u16) -> Result<(), TorchError>;

    /// Counts anew what is taken and given back of a device's memory.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    fn reset_memory_sums(&self, device: u16) -> Result<(), TorchError>;

    /// Gives memory that is kept for the next run back to the system.
    ///
    /// # Errors
    /// Fails with what an operation failed with that nobody was told of yet, and where a device does not give the
    /// memory back.
    fn release_memory(&self) -> Result<(), TorchError>;

    /// First use of a storage (or generator) in a capture on this thread (see [`crate::capture_begin`]), before the
    /// use.
    fn touched(&self, storage: &Self::Storage);

    /// An operator takes or makes a sparse tensor, maybe in a capture on this thread: no replay does.
    fn takes_sparse(&self, device: u16, op: &str);
}
