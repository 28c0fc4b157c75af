//! Libraries of NVIDIA's: opened where they are there, their functions by name. Nothing is linked.

/// What went wrong with a library of NVIDIA's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It could not be opened, for this reason.
    #[error("the library cannot be opened: {0}")]
    Missing(String),
    /// It lacks a function.
    #[error("the library has no such function: {0}")]
    Function(#[from] libloading::Error),
    /// A text or name has a byte that ends it.
    #[error("the text has a zero byte")]
    ZeroByte(#[from] std::ffi::NulError),
    /// A call failed.
    #[error("{call}: {name} ({code})")]
    Call {
        /// The function.
        call: &'static str,
        /// The error's number.
        code: i32,
        /// The error's name, as the library gives it.
        name: String,
    },
    /// A text does not compile.
    #[error("the text does not compile: {log}")]
    Rejected {
        /// What the compiler says.
        log: String,
    },
}

/// Defines `Functions`, a table of a library's functions, each opened by its name.
macro_rules! functions {
    ($($field:ident $symbol:ident($($arg:ty),*) -> $result:ty;)*) => {
        pub(super) struct Functions {
            $($field: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            /// The library's functions of these names are of these types.
            pub(super) unsafe fn open(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: by this function's contract.
                    $($field: *unsafe { library.get(concat!(stringify!($symbol), "\0").as_bytes()) }?,)*
                })
            }
        }
    };
}
pub(super) use functions;
