//! Whether a blob is well formed, down to the last bit.
//!
//! [`ArgReader`] reads whatever a reader can make sense of. The canonical form is stricter: no stray flag, length or
//! padding bit, so that equal arguments are equal words and the text form can say everything a blob says.

use crate::{
    args::{Arg, ArgFlags, ArgReader, Tag},
    dtype::DType,
};

/// Why a blob is not well formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// No argument has this tag.
    #[error("argument {argument} has the unknown tag {tag}")]
    Tag {
        /// Position of the argument.
        argument: usize,
        /// Its code.
        tag: u8,
    },
    /// The payload ends early, or a dtype code is unknown.
    #[error("argument {argument} is cut short or has an unknown dtype")]
    Payload {
        /// Position of the argument.
        argument: usize,
    },
    /// Flags, dtype, length or padding bits that mean nothing for this tag.
    #[error("argument {argument} has bits that mean nothing")]
    Stray {
        /// Position of the argument.
        argument: usize,
    },
}

/// What a blob consumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consumed {
    /// Operands.
    pub operands: usize,
    /// Number words.
    pub numbers: usize,
}

/// Checks a blob; says what it consumes.
///
/// # Errors
/// Fails where a tag, a flag, a type or a length is unknown or cut short; says at which argument.
pub fn check(words: &[u64]) -> Result<Consumed, Malformed> {
    let mut reader = ArgReader::new(words);
    let mut rest = words;
    for argument in 0.. {
        let Some(&head) = rest.first() else { break };
        if Tag::from_code(head as u8).is_none() {
            return Err(Malformed::Tag { argument, tag: head as u8 });
        }
        let arg = reader.next().ok_or(Malformed::Payload { argument })?;
        if !is_canonical(head, &arg) {
            return Err(Malformed::Stray { argument });
        }
        rest = reader.words;
    }
    Ok(Consumed { operands: reader.operands(), numbers: reader.numbers() })
}

/// Dtypes a schema `Scalar` can have.
fn is_number_dtype(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::F64 | DType::Bool | DType::C128)
}

/// Whether the header and payload are those a writer makes for this argument.
fn is_canonical(head: u64, arg: &Arg<'_>) -> bool {
    let header = |tag: Tag, flags: ArgFlags, dtype: u8, len: usize| {
        head == (tag as u64 | (flags.0 as u64) << 8 | (dtype as u64) << 16 | (len as u64) << 32)
    };
    let plain = |tag, len| header(tag, ArgFlags::NONE, 0, len);
    // Bits past `used` in the last of `words` are zero.
    let clean_tail = |words: &[u64], used: usize| match (words.last(), used % 64) {
        (Some(last), bits @ 1..) => last >> bits == 0,
        _ => true,
    };
    // `fresh` says more than `mut` and never stands alone.
    let write_flags =
        |flags: ArgFlags| [ArgFlags::NONE, ArgFlags::MUT, ArgFlags::MUT.and(ArgFlags::FRESH)].contains(&flags);
    match *arg {
        Arg::None => plain(Tag::None, 0),
        Arg::Tensor { flags, .. } => header(Tag::Tensor, flags, 0, 0) && write_flags(flags),
        Arg::HostScalar { dtype, wrapped, .. } => {
            let flags = if wrapped { ArgFlags::WRAPPED } else { ArgFlags::NONE };
            header(Tag::HostScalar, flags, dtype as u8, 0) && dtype != DType::RngState
        }
        Arg::Int(_) => plain(Tag::Int, 0),
        Arg::Bool(v) => plain(Tag::Bool, v as usize),
        Arg::Float { .. } => plain(Tag::Float, 0),
        Arg::Number { dtype, .. } => header(Tag::Number, ArgFlags::NONE, dtype as u8, 0) && is_number_dtype(dtype),
        Arg::Str { words, len } => plain(Tag::Str, len) && clean_tail(words, len * 8),
        Arg::Ints(v) => plain(Tag::Ints, v.len()),
        Arg::Floats(v) => plain(Tag::Floats, v.len()),
        Arg::Bools(v) => plain(Tag::Bools, v.len()) && v.iter().all(|&b| b <= 1),
        Arg::Tensors { len, mask, flags, .. } => {
            header(Tag::Tensors, flags, 0, len) && write_flags(flags) && clean_tail(mask, len)
        }
        Arg::Numbers { dtypes, .. } => {
            let known = |&code: &u64| u8::try_from(code).ok().and_then(DType::from_code).is_some_and(is_number_dtype);
            plain(Tag::Numbers, dtypes.len()) && dtypes.iter().all(known)
        }
        Arg::Generator { .. } => header(Tag::Generator, ArgFlags::MUT, 0, 0),
        Arg::Device => plain(Tag::Device, 0),
    }
}
