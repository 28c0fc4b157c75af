//! Storages hold values: the aliasing model of both doors.
//!
//! A storage holds one current SSA value. Tensors are storage plus sizes, strides and offset. Reading through a layout
//! other than the value's own records *read-view*; writing through one records *write-view* and replaces the storage's
//! value, so every alias sees it. There is no functionalisation and no copy of views. Proven against eager libtorch by
//! random programs (`tests/`).

use std::sync::Arc;

use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Op, Operands, Signature, SiteId, View, layout};
use smallvec::SmallVec;

use crate::{TraceValue, device::Device, sync::Mutex, undo::Log};

/// The memory behind tensors, as a value.
#[derive(Debug)]
pub struct Storage(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Contents; `None` until somebody writes.
    value: Option<TraceValue>,
    /// Layout the contents will have when they are read before being written; `None`: decided by the first reader.
    layout: Option<LayoutRef>,
    nbytes: usize,
    /// Nobody wrote anything since then ([`Device::ever_raised`]).
    unwritten: Option<u32>,
    /// A failed write is not undone ([`Storage::keep_failures`]).
    keeps_failures: bool,
    log: Log,
}

impl State {
    fn new(value: Option<TraceValue>, layout: Option<LayoutRef>, nbytes: usize) -> Self {
        State { value, layout, nbytes, unwritten: None, keeps_failures: false, log: Log::default() }
    }

    fn layout(&self) -> Option<&LayoutRef> {
        self.value.as_ref().map(TraceValue::layout).or(self.layout.as_ref())
    }

    fn shows_all(&self, view: &View<'_>) -> bool {
        view.offset == 0 && self.layout().is_some_and(|l| l.is(view.dtype, view.sizes, view.strides))
    }

    fn covers(&self, view: &View<'_>) -> bool {
        view.offset == 0
            && view.numel() as usize * view.dtype.size_of() == self.nbytes
            && layout::is_dense(view.sizes, view.strides)
    }

    /// The layout that the contents keep when all of them are written through a view of another layout. Keeping it
    /// makes the next program independent of the view that was written through last, so that equal steps give equal
    /// programs.
    fn lasting_layout(&self) -> Option<&LayoutRef> {
        let layout = self.value.as_ref()?.layout();
        (layout.storage_bytes() == self.nbytes && layout.is_dense()).then_some(layout)
    }

    /// The layout of memory that nobody wrote, as a value.
    fn unwritten_layout(&self, view: &View<'_>) -> LayoutRef {
        let fits = self.layout.as_ref().is_some_and(|l| l.storage_bytes() == self.nbytes);
        match &self.layout {
            Some(l) if fits => l.clone(),
            _ if self.covers(view) => view.layout().into(),
            _ => {
                // A flat buffer; of bytes when the element size does not divide it.
                let whole = view.dtype.size_of() > 0 && self.nbytes.is_multiple_of(view.dtype.size_of());
                let dtype = if whole { view.dtype } else { DType::U8 };
                Layout::contiguous(dtype, &[(self.nbytes / dtype.size_of()) as i64]).into()
            }
        }
    }

    /// The current contents, to be read; memory nobody wrote becomes a value of its own.
    fn contents(&mut self, dev: &Device, view: &View<'_>, site: SiteId) -> &TraceValue {
        if self.value.is_none() {
            let layout = self.unwritten_layout(view);
            let value = self.value.insert(empty(dev, layout, site));
            // The memory was there before a call that fails, though its value was recorded after it.
            let since = self.unwritten.filter(|&since| since != dev.ever_raised() && !self.keeps_failures);
            since.into_iter().for_each(|since| dev.note_first(&mut self.log, since, value));
        }
        self.value.as_ref().expect("invariant: set above")
    }

    /// Puts a value into the storage; returns the replaced value unless the log keeps it. That value may be the last
    /// holder of a deep graph, so the caller drops it after releasing the lock.
    #[inline]
    fn put(&mut self, dev: &Device, value: TraceValue, site: SiteId) -> Option<TraceValue> {
        self.layout = None;
        if self.keeps_failures {
            return self.value.replace(value);
        }
        if let Some(since) = self.unwritten.take().filter(|&since| since != dev.ever_raised()) {
            let old = self.value.take();
            let (value, own) = dev.own(value, site);
            let value = self.value.insert(value);
            match own {
                true => dev.note_first(&mut self.log, since, value),
                false => self.log.forget(),
            }
            return old;
        }
        match self.value.take() {
            None => {
                self.value = Some(value);
                None
            }
            Some(old) => {
                let (value, own) = dev.own(value, site);
                let value = self.value.insert(value);
                if own {
                    return dev.note(&mut self.log, old, value);
                }
                self.log.forget();
                Some(old)
            }
        }
    }
}

impl Device {
    /// Prepares `value` to take the place of another value in a storage; also says whether only this storage will hold
    /// it. Undoing a failed write fills the value's placeholder with the previous contents, which is right only if no
    /// other holder refers to that placeholder. So where something can fail, a shared value is replaced by a view of it
    /// that belongs to this storage; elsewhere it stays shared (`false`), and the write is not noted for undoing.
    pub(crate) fn own(&self, value: TraceValue, site: SiteId) -> (TraceValue, bool) {
        if value.is_pending() && value.holders() == 1 {
            return (value, true);
        }
        // The node's lock is let go before the cell's is taken.
        let data = || value.inspect(|_, _| None, |cell| Some(cell.clone()));
        let lasts = self.raises() == 0 && data().is_none_or(|cell| cell.is_good());
        if lasts || value.layout().dtype() == DType::RngState {
            return (value, false);
        }
        let layout = value.layout().clone();
        (read_view(self, value, layout, 0, site), true)
    }

    /// Sets a generator's state by seed: recorded, so draws before and after keep their order.
    pub fn seed(&self, generator: &Storage, seed: u64, site: SiteId) {
        generator.set(self, self.seeded(seed, site));
    }
}

fn empty(dev: &Device, layout: LayoutRef, site: SiteId) -> TraceValue {
    let signature = Signature::new(Op::empty(), SmallVec::new(), SmallVec::from_iter([layout]));
    dev.record(&signature, Operands::new(), SmallVec::new(), site)
}

fn write_view(dev: &Device, base: TraceValue, value: TraceValue, view: &View<'_>, site: SiteId) -> TraceValue {
    let mut args = ArgWriter::new();
    args.tensor_with(ArgFlags::MUT).tensor().ints(view.sizes).ints(view.strides).int(view.offset);
    let (words, numbers) = args.finish();
    let signature = Signature::new(Op::write_view(), words, SmallVec::from_iter([base.layout().clone()]));
    dev.record(&signature, Operands::from_iter([base, value]), numbers, site)
}

pub(crate) fn read_view(dev: &Device, base: TraceValue, layout: LayoutRef, offset: i64, site: SiteId) -> TraceValue {
    let (words, numbers) = ArgWriter::new().tensor().int(offset).finish();
    let signature = Signature::new(Op::read_view(), words, SmallVec::from_iter([layout]));
    dev.record(&signature, Operands::from_iter([base]), numbers, site)
}

/// The same elements in memory of this layout, which has the value's sizes and dtype.
pub(crate) fn laid_out(dev: &Device, value: TraceValue, layout: LayoutRef) -> TraceValue {
    let base = empty(dev, layout.clone(), SiteId::default());
    write_view(dev, base, value, &View::of(&layout, 0), SiteId::default())
}

impl Storage {
    /// Memory of a device for this layout that nobody wrote yet.
    pub fn uninit(dev: Option<&Device>, layout: LayoutRef) -> Self {
        let nbytes = layout.storage_bytes();
        let unwritten = dev.map(Device::ever_raised);
        Storage(Mutex::new(State { unwritten, ..State::new(None, Some(layout), nbytes) }))
    }

    /// Memory of a device of this size, in bytes, that nobody wrote yet.
    pub fn with_bytes(dev: Option<&Device>, nbytes: usize) -> Self {
        let unwritten = dev.map(Device::ever_raised);
        Storage(Mutex::new(State { unwritten, ..State::new(None, None, nbytes) }))
    }

    /// Memory that holds a value.
    pub fn with_value(value: TraceValue) -> Self {
        let nbytes = value.layout().storage_bytes();
        Storage(Mutex::new(State::new(Some(value), None, nbytes)))
    }

    /// Writes to this memory that fail are not undone: it holds the failure, and so does what reads it from then on.
    pub fn keep_failures(&self) {
        self.0.lock().keeps_failures = true;
    }

    /// Size, in bytes.
    pub fn nbytes(&self) -> usize {
        self.0.lock().nbytes
    }

    /// The current contents, if somebody wrote them.
    pub fn current(&self) -> Option<TraceValue> {
        self.0.lock().value.clone()
    }

    /// Replaces the contents by a value of the same layout, a program's placeholder; returns what was there. Nothing is
    /// noted: whoever runs the program says what was there before ([`crate::Extracted::run_with`]).
    pub fn replace(&self, value: TraceValue) -> Option<TraceValue> {
        let mut state = self.0.lock();
        (state.layout, state.unwritten) = (None, None);
        state.value.replace(value)
    }

    /// Replaces the contents by a value that is all of it.
    pub fn set(&self, dev: &Device, value: TraceValue) {
        let mut state = self.0.lock();
        state.nbytes = value.layout().storage_bytes();
        let _old = state.put(dev, value, SiteId::default());
        drop(state);
    }

    /// Whether a view shows all of the memory, each element once.
    pub fn covers(&self, view: &View<'_>) -> bool {
        self.0.lock().covers(view)
    }

    /// The layout of a view's value; shared with the contents where they are the same.
    #[inline]
    pub fn view_layout(&self, view: &View<'_>) -> LayoutRef {
        let state = self.0.lock();
        match state.layout() {
            Some(l) if view.offset == 0 && l.is(view.dtype, view.sizes, view.strides) => l.clone(),
            _ => view.layout().into(),
        }
    }

    /// The contents, if this very layout is theirs and shows all of them.
    #[inline]
    pub(crate) fn whole(&self, layout: &LayoutRef, offset: i64) -> Option<TraceValue> {
        let state = self.0.lock();
        state.value.as_ref().filter(|v| offset == 0 && Arc::ptr_eq(v.layout(), layout)).cloned()
    }

    /// The value a view shows.
    #[inline]
    pub fn read(&self, dev: &Device, view: View<'_>, site: SiteId) -> TraceValue {
        let mut state = self.0.lock();
        if let Some(value) = &state.value
            && view.offset == 0
            && value.layout().is(view.dtype, view.sizes, view.strides)
        {
            return value.clone();
        }
        let contents = state.contents(dev, &view, site).clone();
        if state.shows_all(&view) {
            return contents;
        }
        read_view(dev, contents, view.layout().into(), view.offset, site)
    }

    /// Writes a value through a view; the value has the view's dtype, sizes and strides.
    #[inline]
    pub fn write(&self, dev: &Device, view: View<'_>, value: TraceValue, site: SiteId) {
        let mut state = self.0.lock();
        let _old = if state.shows_all(&view) {
            state.put(dev, value, site)
        } else if state.covers(&view) {
            let value = match state.lasting_layout() {
                Some(layout) => read_view(dev, value, layout.clone(), 0, site),
                None => value,
            };
            state.put(dev, value, site)
        } else if view.numel() == 0 {
            None
        } else {
            let unwritten = || empty(dev, state.unwritten_layout(&view), site);
            let base = state.value.clone().unwrap_or_else(unwritten);
            state.put(dev, write_view(dev, base, value, &view, site), site)
        };
        drop(state);
    }

    /// Takes over the contents of `other`, of which `view` is all. Both share one value from here on, which is
    /// copy-on-write for free.
    pub fn share(&self, dev: &Device, other: &Storage, view: View<'_>, site: SiteId) {
        let (value, nbytes) = {
            let mut state = other.0.lock();
            (state.contents(dev, &view, site).clone(), state.nbytes)
        };
        let mut state = self.0.lock();
        state.nbytes = nbytes;
        let _old = state.put(dev, value, site);
        drop(state);
    }

    /// Changes the size, in bytes, keeping contents at the front.
    pub fn resize(&self, dev: &Device, nbytes: usize, site: SiteId) {
        let mut state = self.0.lock();
        let old_bytes = std::mem::replace(&mut state.nbytes, nbytes);
        let Some(old) = state.value.clone() else {
            state.layout = None;
            return;
        };
        if nbytes == 0 || old_bytes == 0 {
            (state.value, state.unwritten) = (None, Some(dev.ever_raised()));
            return;
        }
        let dtype = old.layout().dtype();
        let size = dtype.size_of();
        let flat = |bytes: usize| Layout::contiguous(dtype, &[(bytes / size) as i64]);
        let grown: LayoutRef = flat(nbytes).into();
        if nbytes > old_bytes {
            let (layout, base) = (old.layout().clone(), empty(dev, grown, site));
            let grown = write_view(dev, base, old, &View::of(&layout, 0), site);
            let _old = state.put(dev, grown, site);
            drop(state);
        } else {
            let shrunk = read_view(dev, old, grown, 0, site);
            let _old = state.put(dev, shrunk, site);
            drop(state);
        }
    }
}
