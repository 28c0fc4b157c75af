//! Graphs on a stream: taken down, given other numbers, launched.
#![allow(unsafe_code, reason = "a graph runs over addresses; who holds the memory there is known here")]

use std::{
    cell::{Cell, RefCell},
    ffi::c_void,
    ops::Range,
};

use ltc_ir::{ErrorClass, Layout};
use ltc_kernels::cuda::{Function, Graph, GraphDriver, Launch, LibraryError, Node, Operands};
use ltc_torch_sys::{Place, Tensor, TorchError, tensor_over};
use smallvec::SmallVec;

/// A launch of ours with runtime numbers, which may be others from run to run.
#[derive(Debug)]
pub(super) struct Varying {
    node: Node,
    function: Function,
    launch: Launch,
    outputs: SmallVec<[u64; 4]>,
    inputs: SmallVec<[u64; 16]>,
    scratch: u64,
    pub(super) numbers: Range<usize>,
}

/// What is noted while a program is taken down.
pub(super) struct Notes {
    driver: &'static GraphDriver,
    varying: RefCell<Vec<Varying>>,
    /// A launch was put on the stream whose node cannot be found.
    lost: Cell<bool>,
}

impl Notes {
    pub(super) fn new(driver: &'static GraphDriver) -> Notes {
        Notes { driver, varying: RefCell::default(), lost: Cell::default() }
    }

    /// The launches whose numbers can be replaced; `None` if one of them cannot be found again.
    pub(super) fn finish(self) -> Option<Vec<Varying>> {
        (!self.lost.get()).then(|| self.varying.into_inner())
    }

    /// A launch was put on the stream, of a step with these numbers.
    pub(super) fn launched(
        &self,
        (function, launch): (Function, &Launch),
        operands: Operands<'_>,
        stream: *mut c_void,
        numbers: Range<usize>,
    ) {
        if !launch.takes_numbers() {
            return;
        }
        // SAFETY: the stream is the one that the program is taken down on, by this thread.
        let Some(node) = (unsafe { self.driver.last_node(stream) }) else {
            self.lost.set(true);
            return;
        };
        self.varying.borrow_mut().push(Varying {
            node,
            function,
            launch: launch.clone(),
            outputs: operands.outputs.into(),
            inputs: operands.inputs.into(),
            scratch: operands.scratch,
            numbers,
        });
    }
}

/// A tensor over the memory of another, which it does not hold: for a program that is taken down, and not run.
pub(super) fn lent(tensor: &Tensor, place: Place, layout: &Layout) -> Result<Tensor, TorchError> {
    // SAFETY: it is a tensor of this layout at the place, and is held until the program has been taken down. Whoever
    // launches the graph sees that there is such memory then.
    unsafe { tensor_over(tensor.data_ptr(), place, layout) }
}

/// Takes down what `work` puts on the stream of the place, on which it has been entered to be taken down.
pub(super) fn take_down<R>(
    driver: &'static GraphDriver,
    place: Place,
    work: impl FnOnce() -> R,
) -> Result<(Graph, R), LibraryError> {
    // SAFETY: the stream is of the context of the place, which is current here, and nobody else's.
    unsafe { driver.take_down(place.stream(), work) }
}

/// Puts a graph on the stream of its place. Its inputs lie where they lay, and are held until this returns.
pub(super) fn launch_graph(graph: &Graph, place: Place) -> Result<(), TorchError> {
    // SAFETY: `TakenDown::fits` has seen that the inputs lie there. libtorch gives their memory to others in the order
    // of the stream, so it stays until the graph has run. All other memory is the graph's own.
    unsafe { graph.launch(place.stream()) }.map_err(failed_launch)
}

impl Varying {
    /// Gives the launch its numbers of these, all of the program's.
    pub(super) fn renumber(&self, graph: &mut Graph, numbers: &[u64]) -> Result<(), TorchError> {
        let Varying { node, function, launch, outputs, inputs, scratch, numbers: at } = self;
        let operands = Operands { outputs, inputs, numbers: &numbers[at.clone()], scratch: *scratch };
        // SAFETY: all of it was noted when this launch was taken down, in this graph.
        unsafe { graph.set(*node, *function, launch, operands) }.map_err(failed_launch)
    }
}

/// A launch that the driver did not take.
pub(super) fn failed_launch(error: LibraryError) -> TorchError {
    let is_lost = matches!(&error, LibraryError::Call { code, .. } if ltc_torch_sys::is_fatal(*code));
    let class = if is_lost { ErrorClass::DeviceLost } else { ErrorClass::Runtime };
    TorchError { class, message: error.to_string() }
}
