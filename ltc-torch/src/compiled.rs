//! Step functions of `tch` programs that replay themselves.

use tch::Tensor;

use crate::{Error, HostNumbers, NotReplayable, Replayer, capture_log};

/// A step function that is replayed where that is safe; see [`compile`].
#[derive(Debug)]
pub struct Compiled<F> {
    step: F,
    replayer: Replayer,
}

/// A call that is recorded. When it goes, also by a panic of the step, its capture is over.
struct CallInProgress<'a>(&'a mut Replayer);

impl<'a> CallInProgress<'a> {
    fn begin(replayer: &'a mut Replayer, inputs: &[Tensor]) -> Result<Self, Error> {
        replayer.begin("", inputs)?;
        Ok(CallInProgress(replayer))
    }
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes a step function replay itself. The step is given tensors and numbers; numbers that an operator takes as they
/// are (a learning rate) may be others at each call.
///
/// Everything else that the closure reads is that of the capture: Rust cannot see it. So whatever changes has to be
/// handed in: as a tensor, as a number, or by another `compile`. A number that the closure computes from one it is
/// given (`numbers[0].min(0.5)`) is another number: hand in the outcome. What is part of the thread's state (grad
/// mode, autocast, ...), which inputs and variables require gradients, which memory variables have (`set_device`,
/// `half`), what 0-dim tensors of the CPU hold that operators take, and whether gradients that the step left are still
/// there, is compared at each call. Other tensors of the CPU are not looked at, nor written by replays. Steps that are
/// given a changing number that no operator takes are recorded: they may decide by it. So are calls with a number that
/// has become 0, since optimisers then do something else.
///
/// Results with a history are recorded each time: return `detach()`. So are steps that draw from the CPU's generator,
/// and steps with `tch`'s Adam, which computes other numbers at each call from the steps that it counts, and nobody
/// hands these in. Steps with its SGD and RMSprop are replayed.
///
/// ```
/// # fn main() -> Result<(), ltc_torch::Error> {
/// use tch::{Device, Kind, Tensor, nn, nn::OptimizerConfig};
/// ltc_torch::init()?;
/// let mut vs = nn::VarStore::new(Device::Cpu);
/// let layer = nn::linear(vs.root(), 3, 1, Default::default());
/// ltc_torch::lazify(&mut vs)?;
/// let mut opt = nn::Sgd::default().build(&vs, 0.1)?;
/// let mut step = ltc_torch::compile(|x: &[Tensor], numbers: &[f64]| {
///     opt.set_lr(numbers[0]);
///     let loss = x[0].apply(&layer).square().mean(Kind::Float);
///     opt.backward_step(&loss);
///     vec![loss.detach()]
/// });
/// let x = ltc_torch::to_lazy(&Tensor::ones([2, 3], (Kind::Float, Device::Cpu)))?;
/// for k in 0..8 {
///     step.call(&[x.shallow_clone()], &[0.1 / f64::from(k + 1)])?;
/// }
/// assert_eq!(step.counts(), (5, 3), "replayed, recorded: {:?}", step.refusal());
/// # Ok(())
/// # }
/// ```
pub fn compile<F: FnMut(&[Tensor], &[f64]) -> Vec<Tensor>>(step: F) -> Compiled<F> {
    Compiled { step, replayer: Replayer::default() }
}

/// [`compile`] for a step that takes no numbers: all that it computes with, besides tensors, is frozen at the capture.
pub fn compile_frozen(
    mut step: impl FnMut(&[Tensor]) -> Vec<Tensor>,
) -> Compiled<impl FnMut(&[Tensor], &[f64]) -> Vec<Tensor>> {
    compile(move |inputs: &[Tensor], _: &[f64]| step(inputs))
}

impl<F: FnMut(&[Tensor], &[f64]) -> Vec<Tensor>> Compiled<F> {
    /// Calls the step on these inputs and numbers. Within a step that is being captured it is part of that.
    ///
    /// # Errors
    /// Fails for an input that is not on the device, where what is recorded does not compile, and with what
    /// an operation failed with that a replay waits for.
    pub fn call(&mut self, inputs: &[Tensor], numbers: &[f64]) -> Result<Vec<Tensor>, Error> {
        if capture_log::is_open() {
            return Ok((self.step)(inputs, numbers));
        }
        let host: Vec<u64> = numbers.iter().map(|n| n.to_bits()).collect();
        if let Some(results) = self.replayer.replay("", inputs, &host)? {
            return Ok(results.into_iter().map(Tensor::from).collect());
        }
        let (ambient, draws) = (crate::ambient(), ltc_torch_sys::host_draws()?);
        let call = CallInProgress::begin(&mut self.replayer, inputs)?;
        let results = (self.step)(inputs, numbers);
        if let Some(what) = ambient.difference(&crate::ambient()) {
            call.0.refuse(format!("it changes {what}"));
        } else if draws != ltc_torch_sys::host_draws()? {
            call.0.refuse("it draws numbers on the CPU: draw on the device, or hand in what was drawn".into());
        } else if results.iter().any(|t| t.defined() && t.requires_grad()) {
            call.0.refuse("it returns a tensor with history: return detach() where no gradient is wanted".into());
        }
        call.0.end(inputs, &results, HostNumbers { program: String::new(), values: host })?;
        drop(call);
        crate::sync()?;
        Ok(results)
    }

    /// Calls replayed and calls recorded so far.
    pub fn counts(&self) -> (u64, u64) {
        self.replayer.counts()
    }

    /// Why it is not replayed, if it is not.
    pub fn refusal(&self) -> Option<&NotReplayable> {
        self.replayer.refusal()
    }
}
