//! Bytes in use on a device.
//!
//! A count of what buffers and running programs hold, kept by the backend because libtorch's CPU allocator keeps none.
//! A value counts once, with the bytes its layout needs; results that alias their operand's memory (views, writes in
//! place) count nothing of their own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use ltc_backend::MemoryInfo;

/// Bytes in use on one device, now and at most.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Meter {
    pub(crate) fn add(&self, bytes: usize) {
        if bytes != 0 {
            let used = self.used.fetch_add(bytes, Relaxed) + bytes;
            // Mostly a plain load: the peak of a steady loop is reached once.
            if used > self.peak.load(Relaxed) {
                self.peak.fetch_max(used, Relaxed);
            }
        }
    }

    pub(crate) fn sub(&self, bytes: usize) {
        if bytes != 0 {
            self.used.fetch_sub(bytes, Relaxed);
        }
    }

    pub(crate) fn info(&self) -> MemoryInfo {
        MemoryInfo { used: self.used.load(Relaxed), peak: self.peak.load(Relaxed), cached: 0 }
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.used.load(Relaxed), Relaxed);
    }
}

/// Bytes counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Arc<Meter>,
    bytes: usize,
}

impl Charge {
    /// Counts `bytes`.
    pub(crate) fn new(meter: &Arc<Meter>, bytes: usize) -> Self {
        meter.add(bytes);
        Charge::adopt(meter, bytes)
    }

    /// Takes over `bytes` that are counted already.
    pub(crate) fn adopt(meter: &Arc<Meter>, bytes: usize) -> Self {
        Charge { meter: meter.clone(), bytes }
    }

    /// Hands the counted bytes to whoever counts on the same meter; `None` leaves them to be returned as usual.
    pub(crate) fn release_to(mut self, meter: &Arc<Meter>) -> Option<usize> {
        Arc::ptr_eq(&self.meter, meter).then(|| std::mem::take(&mut self.bytes))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_come_and_go() {
        let meter = Arc::new(Meter::default());
        let a = Charge::new(&meter, 100);
        let b = Charge::new(&meter, 50);
        drop(a);
        assert_eq!(meter.info(), MemoryInfo { used: 50, peak: 150, cached: 0 });
        meter.reset_peak();
        assert_eq!(meter.info().peak, 50);
        drop(b);
        assert_eq!(meter.info().used, 0);
    }

    #[test]
    fn bytes_move_between_holders_of_one_meter_only() {
        let (here, there) = (Arc::new(Meter::default()), Arc::new(Meter::default()));
        assert_eq!(Charge::new(&here, 8).release_to(&there), None);
        assert_eq!(here.info().used, 0, "what is not handed over is returned");
        assert_eq!(Charge::new(&here, 8).release_to(&here), Some(8));
        assert_eq!(here.info().used, 8, "now the new holder's to return");
        drop(Charge::adopt(&here, 8));
        assert_eq!(here.info().used, 0);
    }
}
