//! What a program is run on.

use std::sync::Arc;

use ltc_ir::ParamBinding;
use smallvec::SmallVec;

use crate::cell::DataCell;

/// What a parameter stands for in a run.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The data, or what it is a slice of.
    pub data: Arc<DataCell>,
    /// The caller gives up its hold; where that is the last one when the program runs, its memory is the program's. Not
    /// for slices.
    pub donated: bool,
    /// It is the slice that the parameter's layout shows from this element of the data's memory on.
    pub slice_at: Option<i64>,
}

/// One argument per parameter.
pub type Arguments = SmallVec<[Argument; 4]>;

impl Argument {
    /// All of the data, which the caller keeps.
    pub fn whole(data: Arc<DataCell>) -> Self {
        Argument { data, donated: false, slice_at: None }
    }
}

impl From<ParamBinding<Arc<DataCell>>> for Argument {
    fn from(binding: ParamBinding<Arc<DataCell>>) -> Self {
        let ParamBinding { data, donated, slice_at, .. } = binding;
        Argument { data, donated, slice_at }
    }
}
