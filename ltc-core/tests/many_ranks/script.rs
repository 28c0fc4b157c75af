//! What every rank does, as a program trained in parallel: the same collectives in the same order, and all else
//! differently.

use std::time::Duration;

use ltc_core::{Storage, TraceValue};

use crate::{
    engine::{Chance, PRIME, pause},
    rank::{Rank, get, set},
};

pub(crate) const BUCKETS: usize = 5;

/// What one rank does that the others do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Nothing,
    /// It drops what it is told, where others look at it now and then.
    DropsResults,
    /// It ends in this step, in the middle of it.
    Ends(usize),
    /// One of its operators fails in this step. Its program takes no notice of errors, as some do not, until it ends.
    Fails {
        step: usize,
        /// What comes before it was sent.
        alone: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) ranks: usize,
    pub(crate) steps: usize,
    pub(crate) seed: u64,
    /// Which rank does what.
    pub(crate) deed: (usize, Deed),
}

/// What the collectives of a step are called; the last tells the ranks something that no weight depends on.
fn label(step: usize, bucket: usize) -> i64 {
    (step * 10 + bucket) as i64
}

fn first(bucket: usize) -> i64 {
    3 * bucket as i64 + 2
}

impl Script {
    /// What each rank calls its collectives, in order.
    pub(crate) fn labels(&self) -> Vec<i64> {
        (0..self.steps).flat_map(|step| (0..=BUCKETS).map(move |bucket| label(step, bucket))).collect()
    }

    /// A bucket's weight after so many steps, each of which adds to it its product with the numbers of all ranks.
    fn weight(&self, bucket: usize, steps: usize) -> i64 {
        let numbers = (self.ranks * (self.ranks + 1) / 2) as i64;
        (0..steps).fold(first(bucket), |weight, _| weight * (1 + numbers) % PRIME)
    }

    pub(crate) fn run(&self, rank: &Rank) -> Result<(), String> {
        let deed = if rank.number == self.deed.0 { self.deed.1 } else { Deed::Nothing };
        let uploads = (0..BUCKETS).map(|bucket| rank.upload(first(bucket)).map(Storage::with_value));
        let weights = uploads.collect::<Result<_, _>>()?;
        let chance = Chance::new(self.seed * 1000 + rank.number as u64);
        let mut training = Training { script: self, rank, deed, weights, chance, kept: None, ignored: None };
        for step in 0..self.steps {
            if deed == Deed::Ends(step) {
                return training.step(step, 2);
            }
            training.step(step, BUCKETS)?;
            training.tell(step)?;
        }
        training.end()
    }
}

/// A rank on its way through a script.
struct Training<'a> {
    script: &'a Script,
    rank: &'a Rank,
    deed: Deed,
    weights: Vec<Storage>,
    chance: Chance,
    /// What fails, which nothing needs: nobody would compute it if it were gone.
    kept: Option<TraceValue>,
    /// The first error that was taken no notice of.
    ignored: Option<String>,
}

impl Training<'_> {
    /// Adds to each of so many weights what all ranks make of it.
    fn step(&mut self, step: usize, buckets: usize) -> Result<(), String> {
        for bucket in 0..buckets {
            let (rank, storage) = (self.rank, &self.weights[bucket]);
            let weight = get(rank.device(), storage);
            let gradient = rank.compute("sim::scale", &[&weight], (rank.number + 1) as f64);
            let sum = rank.collective("sim::all_reduce", &gradient, label(step, bucket), 0.0)?;
            set(rank.device(), storage, rank.compute("sim::add", &[&weight, &sum], 0.0));
            if let Deed::Fails { step: failing, alone } = self.deed
                && (failing, 2) == (step, bucket)
            {
                if alone {
                    rank.device().sync().map_err(|e| e.to_string())?;
                }
                // Nothing is sent until the next collective is behind it.
                self.kept = Some(rank.compute("sim::fail", &[&weight], 0.0));
            } else {
                let looked = self.look_about(step, bucket);
                self.notice(looked)?;
            }
        }
        Ok(())
    }

    /// A collective that no weight depends on; and now and then a word without one.
    fn tell(&mut self, step: usize) -> Result<(), String> {
        let (rank, script) = (self.rank, self.script);
        let gradient = rank.compute("sim::scale", &[&get(rank.device(), &self.weights[0])], 1.0);
        let told = rank.collective("sim::all_reduce", &gradient, label(step, BUCKETS), 0.0)?;
        if self.deed != Deed::DropsResults && self.chance.once_in(2) {
            let all = script.ranks as i64 * script.weight(0, step + 1) % PRIME;
            let found = rank.check(&told, all, || format!("what was told in step {step}"));
            self.notice(found)?;
        }
        drop(told);
        if step % 4 == 3 { self.wait_without_the_device(step) } else { Ok(()) }
    }

    fn end(&self) -> Result<(), String> {
        self.ignored.clone().map_or(Ok(()), Err)?;
        let steps = self.script.steps;
        for (bucket, weight) in self.weights.iter().enumerate() {
            let (value, expected) = (get(self.rank.device(), weight), self.script.weight(bucket, steps));
            self.rank.check(&value, expected, || format!("weight {bucket} in the end"))?;
        }
        Ok(())
    }

    fn notice(&mut self, result: Result<(), String>) -> Result<(), String> {
        match result {
            Err(error) if matches!(self.deed, Deed::Fails { .. }) => {
                self.ignored.get_or_insert(error);
                Ok(())
            }
            result => result,
        }
    }

    /// Sends what was recorded, or a part of it, looks at it, or does nothing for a while: where, no two ranks agree.
    fn look_about(&mut self, step: usize, bucket: usize) -> Result<(), String> {
        let device = self.rank.device();
        let value = get(device, &self.weights[bucket]);
        if self.chance.once_in(8) {
            device.sync().map_err(|e| e.to_string())?;
        }
        if self.chance.once_in(8) {
            device.sync_values(std::slice::from_ref(&value)).map_err(|e| e.to_string())?;
        }
        if self.chance.once_in(10) {
            let expected = self.script.weight(bucket, step + 1);
            self.rank.check(&value, expected, || format!("weight {bucket} in step {step}"))?;
        }
        if self.chance.once_in(20) {
            pause(Duration::from_millis(4).mul_f64(self.chance.part()));
        }
        Ok(())
    }

    /// One rank reads a value and tells the others, who wait for that and send nothing: as at a file, or a store.
    fn wait_without_the_device(&self, step: usize) -> Result<(), String> {
        let (rank, reader) = (self.rank, step % self.script.ranks);
        if rank.number == reader {
            let value = get(rank.device(), &self.weights[1]);
            let expected = self.script.weight(1, step + 1);
            rank.check(&value, expected, || format!("weight 1 for all in step {step}"))?;
            rank.engine.tell(step);
        }
        rank.engine.says(rank.number, format!("waits for rank {reader}'s word in step {step}"));
        // Where nobody tells, a collective may have failed, which is then known by the token.
        rank.engine.await_told(step, reader).or_else(|never| rank.collectives().and(Err(never)))
    }
}
