//! The memory of a native tensor: its own until somebody shares it.
//!
//! Most results of operators are used by other operators and go. Those need no [`Storage`]: nobody sees their memory
//! but one tensor, which shows all of it. A clone or a view makes the storage that both then hold.

use std::sync::Arc;

use ltc_ir::{LayoutRef, SiteId, View};

use crate::{Device, Storage, TraceValue, sync::Mutex};

pub(super) struct Memory(Mutex<State>);

enum State {
    /// One tensor shows all of it.
    Own(TraceValue),
    Shared(Arc<Storage>),
}

impl Memory {
    #[inline]
    pub(super) fn own(value: TraceValue) -> Self {
        Memory(Mutex::new(State::Own(value)))
    }

    pub(super) fn of(storage: Arc<Storage>) -> Self {
        Memory(Mutex::new(State::Shared(storage)))
    }

    /// The storage, made if there was none.
    pub(super) fn shared(&self) -> Arc<Storage> {
        let mut state = self.0.lock();
        if let State::Own(value) = &*state {
            *state = State::Shared(Arc::new(Storage::with_value(value.clone())));
        }
        match &*state {
            State::Shared(storage) => storage.clone(),
            State::Own(_) => unreachable!("invariant: shared above"),
        }
    }

    fn storage(&self) -> Option<Arc<Storage>> {
        match &*self.0.lock() {
            State::Own(_) => None,
            State::Shared(storage) => Some(storage.clone()),
        }
    }

    /// Whether both are the same memory.
    pub(super) fn is(&self, other: &Memory) -> bool {
        std::ptr::eq(self, other) || self.storage().zip(other.storage()).is_some_and(|(a, b)| Arc::ptr_eq(&a, &b))
    }

    pub(super) fn nbytes(&self) -> usize {
        self.shared().nbytes()
    }

    pub(super) fn is_pending(&self) -> bool {
        match &*self.0.lock() {
            State::Own(value) => value.is_pending(),
            State::Shared(storage) => storage.current().is_none_or(|v| v.is_pending()),
        }
    }

    /// What a view of this layout shows.
    #[inline]
    pub(super) fn read(&self, device: &Device, layout: &LayoutRef, offset: i64) -> TraceValue {
        let storage = match &*self.0.lock() {
            State::Own(value) => return value.clone(),
            State::Shared(storage) => match storage.whole(layout, offset) {
                Some(value) => return value,
                None => storage.clone(),
            },
        };
        storage.read(device, View::of(layout, offset), SiteId::default())
    }

    /// Whether a view shows all of it, each element once.
    pub(super) fn covers(&self, view: &View<'_>) -> bool {
        self.storage().is_none_or(|s| s.covers(view))
    }

    /// Writes a value of the view's dtype and sizes; of its layout, where the view shows all.
    pub(super) fn write(&self, device: &Device, view: View<'_>, value: TraceValue) {
        // What it held may have to be given back: a storage notes that.
        self.shared().write(device, view, value, SiteId::default());
    }
}
