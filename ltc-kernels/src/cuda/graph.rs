//! Graphs: what is put on a stream is taken down instead of run, and is put on a stream as one later, as often as
//! wanted. That costs the host one call where it were hundreds.
//!
//! A graph keeps the addresses and the numbers that its launches were given. Numbers of kernels of ours can be replaced
//! ([`Graph::set`]).

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use libloading::Library;

use super::{
    driver::{self, Function},
    launch::{Launch, Operands},
    library::{LibraryError, functions},
};

functions! {
    error_name cuGetErrorName(c_int, *mut *const c_char) -> c_int;
    begin cuStreamBeginCapture_v2(*mut c_void, c_int) -> c_int;
    end cuStreamEndCapture(*mut c_void, *mut *mut c_void) -> c_int;
    // The stream; then what is given: its state, a number, the graph, and the nodes that the next one waits for.
    state cuStreamGetCaptureInfo_v2(
        *mut c_void, *mut c_int, *mut u64, *mut *mut c_void, *mut *const *mut c_void, *mut usize
    ) -> c_int;
    instantiate cuGraphInstantiateWithFlags(*mut *mut c_void, *mut c_void, u64) -> c_int;
    launch cuGraphLaunch(*mut c_void, *mut c_void) -> c_int;
    set cuGraphExecKernelNodeSetParams(*mut c_void, *mut c_void, *const KernelNode) -> c_int;
    destroy cuGraphDestroy(*mut c_void) -> c_int;
    destroy_executable cuGraphExecDestroy(*mut c_void) -> c_int;
}

/// Only calls of the capturing thread are held to what a capture allows.
const THREAD_LOCAL: c_int = 1;

/// `CUDA_KERNEL_NODE_PARAMS`, in its first version.
#[repr(C)]
struct KernelNode {
    function: *mut c_void,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// A launch in a graph.
#[derive(Clone, Copy, Debug)]
pub struct Node(*mut c_void);

// SAFETY: a handle, which the driver takes on any thread.
unsafe impl Send for Node {}

/// Work that was taken down, ready to be put on a stream.
pub struct Graph {
    driver: &'static GraphDriver,
    /// Has the nodes.
    graph: *mut c_void,
    executable: *mut c_void,
}

// SAFETY: both are handles, which the driver takes on any thread; it is used by one at a time, as it is not `Sync`.
unsafe impl Send for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").finish_non_exhaustive()
    }
}

/// What of the driver graphs take.
pub struct GraphDriver {
    functions: Functions,
    /// Has the functions.
    _library: Library,
}

impl fmt::Debug for GraphDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphDriver").finish_non_exhaustive()
    }
}

impl GraphDriver {
    /// Opens the driver.
    ///
    /// # Errors
    /// If there is none, or it is too old for graphs.
    pub fn open() -> Result<GraphDriver, LibraryError> {
        // SAFETY: the file has the driver's name; drivers do nothing that others see when they are loaded.
        let library = unsafe { Library::new(driver::NAME) }.map_err(|e| LibraryError::Missing(e.to_string()))?;
        // SAFETY: these are the types of the driver's header.
        let functions = unsafe { Functions::open(&library)? };
        Ok(GraphDriver { functions, _library: library })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), LibraryError> {
        if code == 0 { Ok(()) } else { Err(driver::failed(self.functions.error_name, call, code)) }
    }

    /// Takes down what `work` puts on the stream. None of it is run.
    ///
    /// # Safety
    /// The stream is of the context that is current on this thread, and nobody else uses it meanwhile.
    ///
    /// # Errors
    /// If `work` asked for something that cannot be taken down, such as a wait for the device.
    pub unsafe fn take_down<R>(
        &'static self,
        stream: *mut c_void,
        work: impl FnOnce() -> R,
    ) -> Result<(Graph, R), LibraryError> {
        let functions = &self.functions;
        // SAFETY: by this function's contract.
        self.check("cuStreamBeginCapture", unsafe { (functions.begin)(stream, THREAD_LOCAL) })?;
        // A panic is passed on when the stream runs again what it is given.
        let result = catch_unwind(AssertUnwindSafe(work));
        let (mut graph, none) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: by this function's contract; `graph` has room for the handle that the driver writes, which is null if
        // the capture has failed.
        let ended = unsafe { (functions.end)(stream, &raw mut graph) };
        let mut graph = Graph { driver: self, graph, executable: none };
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        self.check("cuStreamEndCapture", ended)?;
        // SAFETY: the graph was just given.
        let code = unsafe { (functions.instantiate)(&raw mut graph.executable, graph.graph, 0) };
        self.check("cuGraphInstantiate", code)?;
        Ok((graph, result))
    }

    /// The launch that was taken down last on this stream, if it is the only one that the next would wait for.
    ///
    /// # Safety
    /// As for [`GraphDriver::take_down`], within its `work`.
    pub unsafe fn last_node(&self, stream: *mut c_void) -> Option<Node> {
        let functions = &self.functions;
        let (mut state, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (mut nodes, mut count) = (std::ptr::null(), 0);
        // SAFETY: there is room for all that is given; the nodes stay until the next call for this stream.
        unsafe {
            let code =
                (functions.state)(stream, &raw mut state, &raw mut id, &raw mut graph, &raw mut nodes, &raw mut count);
            (code == 0 && state == 1 && count == 1).then(|| Node(*nodes))
        }
    }
}

impl Graph {
    /// Puts all of it on a stream, and does not wait for it.
    ///
    /// # Safety
    /// The stream is of the context of the one it was taken down on. All memory that was used then is as it was, but
    /// for the elements, and stays until the work is done.
    ///
    /// # Errors
    /// If the driver does not take it, or earlier work failed.
    pub unsafe fn launch(&self, stream: *mut c_void) -> Result<(), LibraryError> {
        // SAFETY: by this function's contract; the handle is this graph's.
        self.driver.check("cuGraphLaunch", unsafe { (self.driver.functions.launch)(self.executable, stream) })
    }

    /// Gives a launch other numbers, from the next [`Graph::launch`] on.
    ///
    /// # Safety
    /// The node is this graph's, of this function, launch and memory.
    ///
    /// # Errors
    /// If the driver refuses.
    pub unsafe fn set(
        &mut self,
        node: Node,
        function: Function,
        launch: &Launch,
        operands: Operands<'_>,
    ) -> Result<(), LibraryError> {
        let mut values = launch.arguments(operands);
        let mut parameters: Vec<*mut c_void> = values.iter_mut().map(|v| std::ptr::from_mut(v).cast()).collect();
        let kernel = KernelNode {
            function: function.0,
            grid: [launch.grid, 1, 1],
            block: [launch.block, 1, 1],
            shared_bytes: 0,
            parameters: parameters.as_mut_ptr(),
            extra: std::ptr::null_mut(),
        };
        // SAFETY: there is an argument of eight bytes for each parameter, which the driver copies; the rest is by this
        // function's contract.
        let code = unsafe { (self.driver.functions.set)(self.executable, node.0, &raw const kernel) };
        self.driver.check("cuGraphExecKernelNodeSetParams", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let functions = &self.driver.functions;
        // SAFETY: both are this graph's, or null. One that is still to run is given up by the driver when it has run.
        unsafe {
            if !self.executable.is_null() {
                let _ = (functions.destroy_executable)(self.executable);
            }
            if !self.graph.is_null() {
                let _ = (functions.destroy)(self.graph);
            }
        }
    }
}
