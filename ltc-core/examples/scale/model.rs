//! The time of a step of data-parallel training, on paper: rings of all-reduces, one bucket after the other.
//!
//! `ltc-core/tests/many_ranks` compares it with a simulation that sends each message of each ring.

/// Between neighbours of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) name: &'static str,
    /// Bytes a second, of one rank in one direction.
    pub(crate) bandwidth: f64,
    /// Seconds from the end of a message's sending to its use, software included.
    pub(crate) latency: f64,
}

/// What a rank computes in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Training {
    pub(crate) name: &'static str,
    /// Bytes of all gradients.
    pub(crate) gradients: f64,
    /// Seconds.
    pub(crate) forward: f64,
    /// Seconds.
    pub(crate) backward: f64,
}

/// When a bucket's sum is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Where it is asked for: the backward stands still meanwhile.
    AtOnce,
    /// After the backward, which goes on meanwhile.
    Overlapped,
}

pub(crate) const MIB: f64 = (1 << 20) as f64;

pub(crate) const NETWORKS: [Network; 3] = [
    Network { name: "10 GbE, TCP", bandwidth: 1.25e9, latency: 30e-6 },
    Network { name: "100 GbE, RoCE", bandwidth: 12.5e9, latency: 5e-6 },
    Network { name: "NVLink class", bandwidth: 300e9, latency: 2e-6 },
];

/// Operations a second that the device is taken to get through.
const SPEED: f64 = 50e12;

/// A training whose forward takes so many operations, and whose backward twice as many.
const fn training(name: &'static str, parameters: f64, forward: f64) -> Training {
    Training { name, gradients: 4.0 * parameters, forward: forward / SPEED, backward: 2.0 * forward / SPEED }
}

pub(crate) const TRAININGS: [Training; 2] = [
    // 4.1e9 multiplications and as many additions for each of 32 images.
    training("ResNet-50, 32 images a rank", 25.6e6, 32.0 * 8.2e9),
    // Two operations for each parameter and each of 8 times 1,024 tokens.
    training("GPT-2 small, 8,192 tokens a rank", 124e6, 8192.0 * 2.0 * 124e6),
];

impl Training {
    /// Bytes of the buckets, in the order in which they are full; the last has what is left.
    pub(crate) fn buckets(&self, size: f64) -> Vec<f64> {
        let count = (self.gradients / size).ceil() as usize;
        (0..count).map(|i| (self.gradients - i as f64 * size).min(size)).collect()
    }

    /// Seconds of a step.
    pub(crate) fn step(&self, ranks: usize, size: f64, network: &Network, wait: Wait) -> f64 {
        let computing = self.forward + self.backward;
        let (mut ready, mut reduced) = (self.forward, 0.0f64);
        let mut reducing = 0.0;
        for bytes in self.buckets(size) {
            let ring = network.ring(ranks, bytes);
            reducing += ring;
            ready += self.backward * bytes / self.gradients;
            reduced = reduced.max(ready) + ring;
        }
        match wait {
            Wait::AtOnce => computing + reducing,
            Wait::Overlapped => computing.max(reduced),
        }
    }
}

impl Network {
    /// Seconds of an all-reduce in a ring: each rank sends a part of the data, one of as many as there are ranks, twice
    /// to all ranks but one.
    pub(crate) fn ring(&self, ranks: usize, bytes: f64) -> f64 {
        let messages = 2.0 * (ranks as f64 - 1.0);
        messages * (bytes / ranks as f64 / self.bandwidth + self.latency)
    }
}
