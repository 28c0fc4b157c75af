//! Bytes in use on a device.
//!
//! A count of what buffers and running programs hold, kept by the backend because libtorch's CPU allocator keeps none.
//! A value counts once, with the bytes its layout needs; results that alias their operand's memory (views, writes in
//! place) count nothing of their own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use ltc_backend::{MemoryInfo, MemoryReset};

/// Bytes in use on one device, now and at most.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    used: AtomicUsize,
    peak: AtomicUsize,
    /// What was given back, ever. What was taken is that and what is in use.
    freed: AtomicUsize,
    /// What was taken, and given back, before the last reset.
    taken_before: AtomicUsize,
    freed_before: AtomicUsize,
    reserved_peak: AtomicUsize,
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
            self.freed.fetch_add(bytes, Relaxed);
            self.used.fetch_sub(bytes, Relaxed);
        }
    }

    /// So many bytes are kept for reuse now.
    pub(crate) fn note_cached(&self, cached: usize) {
        let reserved = self.used.load(Relaxed) + cached;
        if reserved > self.reserved_peak.load(Relaxed) {
            self.reserved_peak.fetch_max(reserved, Relaxed);
        }
    }

    fn ever_taken(&self) -> usize {
        self.freed.load(Relaxed).wrapping_add(self.used.load(Relaxed))
    }

    /// `cached`: bytes that are kept for reuse.
    pub(crate) fn info(&self, cached: usize) -> MemoryInfo {
        self.note_cached(cached);
        let (used, peak) = (self.used.load(Relaxed), self.peak.load(Relaxed));
        let taken = self.ever_taken().wrapping_sub(self.taken_before.load(Relaxed));
        let freed = self.freed.load(Relaxed).wrapping_sub(self.freed_before.load(Relaxed));
        let reserved_peak = self.reserved_peak.load(Relaxed).max(peak);
        MemoryInfo { used, peak, taken, freed, cached, reserved_peak }
    }

    pub(crate) fn reset(&self, what: MemoryReset) {
        match what {
            MemoryReset::Peaks => {
                self.peak.store(self.used.load(Relaxed), Relaxed);
                self.reserved_peak.store(0, Relaxed);
            }
            MemoryReset::Sums => {
                self.taken_before.store(self.ever_taken(), Relaxed);
                self.freed_before.store(self.freed.load(Relaxed), Relaxed);
            }
        }
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

    /// Where they are counted.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
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
        let info = MemoryInfo { used: 50, peak: 150, taken: 150, freed: 100, cached: 0, reserved_peak: 150 };
        assert_eq!(meter.info(0), info);
        meter.note_cached(200);
        assert_eq!(meter.info(100), MemoryInfo { cached: 100, reserved_peak: 250, ..info });
        meter.reset(MemoryReset::Peaks);
        meter.reset(MemoryReset::Sums);
        assert_eq!(
            meter.info(10),
            MemoryInfo { used: 50, peak: 50, taken: 0, freed: 0, cached: 10, reserved_peak: 60 }
        );
        drop(b);
        drop(Charge::new(&meter, 7));
        assert_eq!(meter.info(0), MemoryInfo { used: 0, peak: 50, taken: 7, freed: 57, cached: 0, reserved_peak: 60 });
    }

    #[test]
    fn bytes_move_between_holders_of_one_meter_only() {
        let (here, there) = (Arc::new(Meter::default()), Arc::new(Meter::default()));
        assert_eq!(Charge::new(&here, 8).release_to(&there), None);
        assert_eq!(here.info(0).used, 0, "what is not handed over is returned");
        assert_eq!(Charge::new(&here, 8).release_to(&here), Some(8));
        assert_eq!(here.info(0).used, 8, "now the new holder's to return");
        drop(Charge::adopt(&here, 8));
        assert_eq!(here.info(0).used, 0);
    }
}
