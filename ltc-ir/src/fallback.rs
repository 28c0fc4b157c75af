//! Why an operator has no place in a graph.

/// Why an operator ran eagerly. The numbers cross the border to libtorch (`ltc-torch-sys/csrc/abi.h`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FallbackReason {
    /// Its result's shape depends on values, or it returns a host value.
    DataDependent = 0,
    /// Nothing can tell its result's shape without running it.
    NoShapeFunction = 1,
    /// An argument cannot be recorded (sparse layout, stream, host tensor operand, ...).
    UnsupportedArgument = 2,
    /// The user's configuration forces it.
    Forced = 3,
}

impl FallbackReason {
    /// The reason of this number.
    pub fn from_code(code: i32) -> Option<Self> {
        use FallbackReason::{DataDependent, Forced, NoShapeFunction, UnsupportedArgument};
        [DataDependent, NoShapeFunction, UnsupportedArgument, Forced].into_iter().find(|&r| r as i32 == code)
    }

    /// In words, for reports.
    pub fn as_str(self) -> &'static str {
        match self {
            FallbackReason::DataDependent => "result depends on data",
            FallbackReason::NoShapeFunction => "no shape function",
            FallbackReason::UnsupportedArgument => "argument cannot be recorded",
            FallbackReason::Forced => "forced by configuration",
        }
    }
}
