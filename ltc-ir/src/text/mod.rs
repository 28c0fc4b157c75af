//! The text form of graphs: what dumps show and file tests are written in.
//!
//! Printing is deterministic and says all of a graph's structure; parsing what was printed gives an equal graph. Sites
//! are no structure and are not printed. Neither direction recurses, both are linear.
//!
//! ```text
//! graph(%p0: f32[2, 3], %p1: f32[3]{1}) {
//!   %0: f32[2, 3] = aten::add.Tensor(%p0, %p1, number i64)
//!   %1: f32[2], %2: i64[2] = aten::max.dim(%0, int 1, bool false)
//!   return %0, %2
//! }
//! ```
//!
//! # Grammar
//!
//! ```text
//! graph    = "graph" "(" [ param { "," param } ] ")" "{" { node } "return" [ value { "," value } ] "}"
//! param    = "%p" digits ":" layout                          numbered from 0, in order
//! node     = [ result { "," result } "=" ] op ( args | raw )
//! result   = "%" digits ":" layout                           numbered from 0 through the graph, in order
//! value    = "%p" digits | "%" digits                        defined above
//! layout   = dtype "[" [ int { "," int } ] "]" [ "{" int { "," int } "}" ]      sizes, then strides unless row-major
//! dtype    = "f32" | "i64" | "bool" | "rng" | ...            as DType::name
//! op       = letter-or-underscore { letter | digit | "_" | "." | ":" } | string
//! args     = "(" [ arg { "," arg } ] ")"
//! arg      = "none" | "device"
//!          | [ "mut" ] value | "fresh"                       tensor: read, written, written without being read
//!          | "wrapped" dtype | "host" dtype                  number for a tensor: promoted as a number, as a tensor
//!          | "float" | "number" dtype                        runtime number
//!          | "int" int | "bool" bool | string
//!          | "ints" "[" [ int { "," int } ] "]"              so "floats", "bools"; "numbers" holds dtypes
//!          | [ "mut" | "fresh" ] "tensors" "[" [ entry { "," entry } ] "]"
//!          | "generator" value
//! entry    = value | "fresh" | "none"
//! raw      = "raw" "[" [ hex { "," hex } ] "]" "(" [ value { "," value } ] ")" digits
//! float    = decimal | "inf" | "-inf" | "nan" | "nan(" hex ")"      hex: all 64 bits of any other NaN
//! string   = '"' { character | "\"" | "\\" | "\n" | "\r" | "\t" | "\x" two hex digits } '"'
//! comment  = "//" to the end of the line | "/*" ... "*/"
//! ```
//!
//! A symbolic graph ([`crate::Symbolic`]) has symbols with the values they had at first, sizes that must be more than
//! one, and expressions where an integer may stand:
//!
//! ```text
//! symbolic = "symbols" "(" [ "s0" "=" int { "," "s1" "=" int } ] ")" [ "where" expr ">" "1" { "," expr ">" "1" } ]
//!            graph
//! expr     = [ "-" ] term { ( "+" | "-" ) term } | "(" expr ")" "/" digits | term "/" digits
//! term     = factor { "*" factor }
//! factor   = digits | "s" digits
//! ```
//!
//! Runtime numbers are holes with a type: their values are no structure and their positions follow from the order. A
//! string is bytes; `\x` stands for what is not printable UTF-8. A node whose argument words are not well formed, or do
//! not fit its operands and numbers, prints `raw`: words, operands, count of number words. So broken graphs can be
//! looked at, and written down for the verifier's tests.

mod parse;
mod print;

pub use parse::ParseError;
pub use print::print_with;
pub(crate) use print::{Names, write_args};
