//! The operator table: one row per operator the system knows.
//!
//! A row gives name, class, properties and shape rule. Operators without a row are recorded all the same, from their
//! dispatcher schema, with shapes from libtorch's meta functions.

use crate::{
    op::{OpClass, Props},
    rules::{self, Rule},
};

/// One row.
#[derive(Clone, Copy)]
pub struct Row {
    /// Qualified name with overload.
    pub name: &'static str,
    /// Class.
    pub class: OpClass,
    /// Properties beyond the schema's.
    pub props: Props,
    /// Result layouts; `None` leaves them to libtorch's meta function.
    pub rule: Option<Rule>,
}

const fn row(name: &'static str, class: OpClass, props: Props, rule: Option<Rule>) -> Row {
    Row { name, class, props, rule }
}

/// All rows.
pub const ROWS: &[Row] = &[row("aten::relu", OpClass::Pointwise, Props::NONE, Some(rules::like_first))];

/// The row of an operator.
pub fn find(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|r| r.name == name)
}
