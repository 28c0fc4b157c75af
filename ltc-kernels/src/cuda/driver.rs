//! The driver of NVIDIA's GPUs: machine code to functions, functions to launches.
//!
//! Contexts, streams and memory are libtorch's. Calls here are for the context that is current on their thread.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    path::Path,
};

use libloading::Library;

use super::{
    Arch,
    launch::{Launch, Operands},
    library::{LibraryError, functions},
};

/// The driver's name; it is where the system has a GPU.
pub(super) const NAME: &str = "libcuda.so.1";

/// Numbers of the attributes that say what a device can do.
const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];

functions! {
    init cuInit(c_uint) -> c_int;
    error_name cuGetErrorName(c_int, *mut *const c_char) -> c_int;
    device cuDeviceGet(*mut c_int, c_int) -> c_int;
    attribute cuDeviceGetAttribute(*mut c_int, c_int, c_int) -> c_int;
    load cuModuleLoadData(*mut *mut c_void, *const c_void) -> c_int;
    function cuModuleGetFunction(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
    launch cuLaunchKernel(
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void,
        *mut *mut c_void
    ) -> c_int;
}

/// Machine code that was loaded. It stays until the process ends: work that is queued may need it.
#[derive(Clone, Copy, Debug)]
pub struct Module(*mut c_void);

/// A function of a [`Module`].
#[derive(Clone, Copy, Debug)]
pub struct Function(pub(super) *mut c_void);

// SAFETY: a module is a handle, which the driver takes on any thread.
unsafe impl Send for Module {}
// SAFETY: the driver takes a handle on several threads at once, and no call changes the module behind it.
unsafe impl Sync for Module {}
// SAFETY: a function is a handle, which the driver takes on any thread.
unsafe impl Send for Function {}
// SAFETY: the driver takes a handle on several threads at once, and no call changes the function behind it.
unsafe impl Sync for Function {}

/// The driver, opened.
pub struct Driver {
    functions: Functions,
    /// Has the functions.
    _library: Library,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Opens the driver.
    ///
    /// # Errors
    /// If there is none, or no GPU, or it lacks a function.
    pub fn open() -> Result<Driver, LibraryError> {
        // SAFETY: the file has the driver's name.
        unsafe { Driver::open_at(Path::new(NAME)) }
    }

    /// Opens the driver that lies there.
    ///
    /// # Safety
    /// The file is a driver, or does as one.
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub unsafe fn open_at(path: &Path) -> Result<Driver, LibraryError> {
        // SAFETY: by this function's contract; drivers do nothing that others see when they are loaded.
        let library = unsafe { Library::new(path) }.map_err(|e| LibraryError::Missing(e.to_string()))?;
        // SAFETY: by this function's contract; these are the types of the driver's header.
        let functions = unsafe { Functions::open(&library)? };
        let driver = Driver { functions, _library: library };
        // SAFETY: takes no memory of ours, and may be called more than once.
        driver.check("cuInit", unsafe { (driver.functions.init)(0) })?;
        Ok(driver)
    }

    /// What a device can do.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn arch(&self, index: i32) -> Result<Arch, LibraryError> {
        let mut device = 0;
        // SAFETY: `device` has room for the handle that the driver writes.
        self.check("cuDeviceGet", unsafe { (self.functions.device)(&raw mut device, index) })?;
        let mut numbers = [0; 2];
        for (number, attribute) in numbers.iter_mut().zip(COMPUTE_CAPABILITY) {
            // SAFETY: `number` has room for the value that the driver writes, and the driver has just given `device`.
            let code = unsafe { (self.functions.attribute)(number, attribute, device) };
            self.check("cuDeviceGetAttribute", code)?;
        }
        Ok(Arch { major: numbers[0] as u32, minor: numbers[1] as u32 })
    }

    /// Loads machine code, as [`Nvrtc::machine_code`](super::Nvrtc::machine_code) gives it, into the current context.
    ///
    /// # Errors
    /// If there is no context, or it is code for another GPU.
    pub fn load(&self, code: &[u8]) -> Result<Module, LibraryError> {
        let mut module = std::ptr::null_mut();
        // SAFETY: machine code knows its own length, and text ends with a zero byte; both are copied.
        self.check("cuModuleLoadData", unsafe { (self.functions.load)(&raw mut module, code.as_ptr().cast()) })?;
        Ok(Module(module))
    }

    /// The function of this name.
    ///
    /// # Errors
    /// If the code has none.
    pub fn function(&self, module: Module, name: &str) -> Result<Function, LibraryError> {
        let (name, mut function) = (CString::new(name)?, std::ptr::null_mut());
        // SAFETY: modules stay, and the name ends with a zero byte.
        let code = unsafe { (self.functions.function)(&raw mut function, module.0, name.as_ptr()) };
        self.check("cuModuleGetFunction", code)?;
        Ok(Function(function))
    }

    /// Puts a launch on a stream, and does not wait for it.
    ///
    /// # Safety
    /// The function is the launch's, loaded into the current context; the stream is of this context, or null for its
    /// first. Operands lie on its device, with all elements that the kernel was made for, until the launch has run.
    ///
    /// # Errors
    /// If the driver does not take the launch, or an earlier one failed.
    pub unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        operands: Operands<'_>,
        stream: *mut c_void,
    ) -> Result<(), LibraryError> {
        let mut values = launch.arguments(operands);
        let mut args: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let (grid, block, args) = (launch.grid, launch.block, args.as_mut_ptr());
        let none = std::ptr::null_mut();
        // SAFETY: there is an argument of eight bytes for each parameter, which the driver copies; the rest is by this
        // function's contract.
        let code = unsafe { (self.functions.launch)(function.0, grid, 1, 1, block, 1, 1, 0, stream, args, none) };
        self.check("cuLaunchKernel", code)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), LibraryError> {
        if code == 0 { Ok(()) } else { Err(failed(self.functions.error_name, call, code)) }
    }
}

/// What tells an error's name.
pub(super) type ErrorName = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// A call of the driver's that failed.
pub(super) fn failed(error_name: ErrorName, call: &'static str, code: c_int) -> LibraryError {
    let mut name = std::ptr::null();
    // SAFETY: the driver gives a text that stays, or null for a number it does not know.
    let known = unsafe { error_name(code, &raw mut name) } == 0 && !name.is_null();
    // SAFETY: where `known` holds, the driver gave a text that ends with a zero byte and stays.
    let name = if known { unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned() } else { String::new() };
    LibraryError::Call { call, code, name }
}
