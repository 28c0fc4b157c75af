//! Writing a decoded argument again, for rewrites that change another one of the same call.

use super::{Arg, ArgFlags, ArgWriter, Tag};
use crate::dtype::DType;

impl ArgWriter {
    /// Appends an argument as it was read. Its numbers are left at zero: they are no part of the structure.
    pub fn again(&mut self, arg: &Arg<'_>) -> &mut Self {
        let flags_of = |fresh: bool, flags: ArgFlags| if fresh { flags.and(ArgFlags::FRESH) } else { flags };
        match *arg {
            Arg::None => self.none(),
            Arg::Tensor { operand, flags } => self.tensor_with(flags_of(operand.is_none(), flags)),
            Arg::HostScalar { dtype, wrapped, .. } => {
                self.host_scalar(dtype, [0, 0], if wrapped { ArgFlags::WRAPPED } else { ArgFlags::NONE })
            }
            Arg::Int(v) => self.int(v),
            Arg::Bool(v) => self.bool(v),
            Arg::Float { .. } => self.float(0.0),
            Arg::Number { dtype, .. } => self.number_of(dtype),
            Arg::Str { words, len } => self.payload(Tag::Str, len, words),
            Arg::Ints(words) => self.payload(Tag::Ints, words.len(), words),
            Arg::Floats(words) => self.payload(Tag::Floats, words.len(), words),
            Arg::Bools(words) => self.payload(Tag::Bools, words.len(), words),
            Arg::Tensors { len, mask, flags, .. } => {
                let present: Vec<bool> = (0..len).map(|i| mask[i / 64] >> (i % 64) & 1 == 1).collect();
                self.tensors(&present, flags)
            }
            Arg::Numbers { dtypes, .. } => {
                self.head(Tag::Numbers, ArgFlags::NONE, 0, dtypes.len());
                for &code in dtypes {
                    self.words.push(code);
                    let words = u8::try_from(code).ok().and_then(DType::from_code).map_or(1, super::scalar_words);
                    self.numbers.extend(std::iter::repeat_n(0, words));
                }
                self
            }
            Arg::Generator { .. } => self.generator(),
            Arg::Device => self.device(),
        }
    }

    fn payload(&mut self, tag: Tag, len: usize, words: &[u64]) -> &mut Self {
        self.head(tag, ArgFlags::NONE, 0, len).words.extend_from_slice(words);
        self
    }

    fn number_of(&mut self, dtype: DType) -> &mut Self {
        self.head(Tag::Number, ArgFlags::NONE, dtype as u8, 0);
        self.numbers.extend(std::iter::repeat_n(0, super::scalar_words(dtype)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_argument_is_written_as_it_was() {
        let (words, numbers) = ArgWriter::new()
            .none()
            .tensor()
            .tensor_with(ArgFlags::MUT)
            .tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH))
            .wrapped(2.5.into())
            .host_scalar(DType::C64, [1, 2], ArgFlags::NONE)
            .int(-3)
            .bool(true)
            .float(0.5)
            .number(7i64.into())
            .str("trunc, longer than a word")
            .ints(&[1, -2])
            .floats(&[0.25])
            .bools(&[true, false])
            .tensors(&[true, false, true], ArgFlags::MUT)
            .number_list(&[1.5.into(), 2i64.into()])
            .generator()
            .device()
            .finish();
        let mut copy = ArgWriter::new();
        crate::args::ArgReader::new(&words).for_each(|arg| {
            copy.again(&arg);
        });
        let (again, zeros) = copy.finish();
        assert_eq!((again, zeros.len()), (words, numbers.len()));
    }
}
