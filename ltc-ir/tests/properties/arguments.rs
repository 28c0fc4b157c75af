//! Argument blobs: what is written is read, and nothing makes a reader panic.

use arbitrary::Unstructured;
use ltc_ir::{Arg, ArgFlags, ArgReader, ArgWriter, DType, Scalar, args};
use proptest::{collection::vec, prelude::*};

use crate::{
    calls,
    random::{self, AnyArg, write_plain},
};

/// Whether a decoded argument says what was written; `numbers` are those of the blob.
fn agrees(written: &AnyArg, read: &Arg<'_>, numbers: &[u64]) -> bool {
    let scalar = |dtype: DType, at: usize| Scalar::from_words(dtype, &numbers[at..]);
    match (written, *read) {
        (AnyArg::None, Arg::None) | (AnyArg::Device, Arg::Device) | (AnyArg::Generator(_), Arg::Generator { .. }) => {
            true
        }
        (AnyArg::Tensor(_, how, _), Arg::Tensor { operand, flags }) => {
            flags == how.flags() && operand.is_some() != flags.has(ArgFlags::FRESH)
        }
        (AnyArg::Host(d, bits, w), Arg::HostScalar { number, dtype, wrapped }) => {
            *d == dtype && *w == wrapped && scalar(dtype, number) == Scalar::from_words(*d, bits)
        }
        (AnyArg::Int(v), Arg::Int(r)) => *v == r,
        (AnyArg::Bool(v), Arg::Bool(r)) => *v == r,
        (AnyArg::Float(bits), Arg::Float { number }) => numbers[number] == *bits,
        (AnyArg::Number(n), Arg::Number { number, dtype }) => scalar(dtype, number) == Some(*n),
        (AnyArg::Str(v), Arg::Str { words, len }) => {
            words.iter().flat_map(|w| w.to_le_bytes()).take(len).eq(v.iter().copied())
        }
        (AnyArg::Ints(v), Arg::Ints(r)) => r.iter().map(|&w| w as i64).eq(v.iter().copied()),
        (AnyArg::Floats(v), Arg::Floats(r)) => v == r,
        (AnyArg::Bools(v), Arg::Bools(r)) => r.iter().map(|&w| w != 0).eq(v.iter().copied()),
        (AnyArg::Tensors(items, how, _), Arg::Tensors { len, mask, flags, .. }) => {
            let present = (0..len).map(|i| mask[i / 64] >> (i % 64) & 1 == 1);
            flags == how.flags() && present.eq(items.iter().map(Option::is_some))
        }
        (AnyArg::Numbers(v), Arg::Numbers { dtypes, first_number }) => {
            let mut at = first_number;
            dtypes.len() == v.len()
                && dtypes.iter().zip(v).all(|(&code, n)| {
                    let dtype = DType::from_code(code as u8).expect("a writer's code");
                    at += args::scalar_words(dtype);
                    scalar(dtype, at - args::scalar_words(dtype)) == Some(*n)
                })
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(written in vec(random::any_arg(), 0..12)) {
        let mut w = ArgWriter::new();
        written.iter().for_each(|a| write_plain(&mut w, a));
        let (words, numbers) = w.finish();
        let mut reader = ArgReader::new(&words);
        let read: Vec<Arg<'_>> = reader.by_ref().collect();
        prop_assert!(!reader.error());
        prop_assert_eq!(reader.numbers(), numbers.len());
        prop_assert_eq!(read.len(), written.len());
        for (a, b) in written.iter().zip(&read) {
            prop_assert!(agrees(a, b, &numbers), "{:?} {:?}", a, b);
        }
        let consumed = args::check(&words).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!((consumed.operands, consumed.numbers), (reader.operands(), reader.numbers()));
    }

    #[test]
    fn malformed_blobs_never_panic(
        written in vec(random::any_arg(), 0..6),
        damage in vec((any::<usize>(), any::<u64>()), 0..4),
        length: usize,
    ) {
        let mut w = ArgWriter::new();
        written.iter().for_each(|a| write_plain(&mut w, a));
        let (mut words, _) = w.finish();
        for (at, bits) in damage {
            if let Some(i) = at.checked_rem(words.len()) {
                words[i] ^= bits;
            }
        }
        words.truncate(length % 40);
        let mut reader = ArgReader::new(&words);
        let count = reader.by_ref().count();
        prop_assert!(count <= words.len());
        // Strict means stricter.
        prop_assert!(args::check(&words).is_err() || !reader.error());
    }

    #[test]
    fn any_words_never_panic(
        heads in vec((0u8..16, any::<u8>(), any::<u8>(), 0u32..5), 0..6),
        words in vec(any::<u64>(), 0..12),
    ) {
        let _ = ArgReader::new(&words).count();
        let heads = heads.into_iter().map(|(tag, flags, dtype, len)| {
            tag as u64 | (flags as u64) << 8 | (dtype as u64) << 16 | (len as u64) << 32
        });
        let words: Vec<u64> = heads.zip(words).flat_map(|(h, w)| [h, w]).collect();
        let _ = ArgReader::new(&words).count();
        let _ = args::check(&words);
    }

    /// Of each operator of the table, in turn.
    #[test]
    fn calls_of_the_table_are_answered_or_refused_without_a_panic(row: u16, bytes in vec(any::<u8>(), 0..400)) {
        let bytes: Vec<u8> = row.to_le_bytes().into_iter().chain(bytes).collect();
        let _ = calls::call(&mut Unstructured::new(&bytes));
    }

    /// A shape rule sees whatever the caller recorded; it may refuse it, no more.
    #[test]
    fn calls_of_any_arguments_never_panic(written in vec(random::any_arg(), 0..6), n in 0usize..90) {
        let mut w = ArgWriter::new();
        written.iter().for_each(|a| write_plain(&mut w, a));
        let (words, numbers) = w.finish();
        let layout = ltc_ir::Layout::contiguous(DType::F32, &[2]);
        let operands = vec![&layout; n];
        let Some(call) = ltc_ir::rules::Call::decode("aten::x", &words, &operands, &numbers) else { return Ok(()) };
        for i in 0..=written.len() {
            let _ = (call.tensor(i), call.tensors(i), call.ints(i), call.bools(i), call.dtype(i), call.number(i));
        }
    }
}

#[test]
fn a_dtype_code_of_a_number_list_is_read_whole() {
    let words = [args::Tag::Numbers as u64 | 1 << 32, 0x100 | DType::I64 as u64];
    let mut reader = ArgReader::new(&words);
    assert_eq!(reader.next(), None);
    assert!(reader.error());
}

#[test]
fn calls_without_arguments_are_answered_or_refused() {
    for row in ltc_ir::table::rows() {
        let call = ltc_ir::rules::Call::decode(row.name, &[], &[], &[]).expect("no words are well formed");
        let _ = (row.rule)(&call);
    }
}

/// What random calls found once.
#[test]
fn calls_beyond_all_memory_are_answered_or_refused() {
    const LARGE: i64 = 1 << 62;
    let dense = ltc_ir::Layout::contiguous(DType::F32, &[2, 4, 4, 4]);
    let apart = ltc_ir::Layout::strided(DType::F32, &[4, 4, 4, 4], &[LARGE, LARGE, LARGE, LARGE]);
    let call = |name: &str, layout: &ltc_ir::Layout, w: &mut ArgWriter| {
        let row = ltc_ir::table::rows().iter().find(|row| row.name == name).expect("a row of the table");
        let (words, numbers) = w.finish();
        let operands = [layout];
        let call = ltc_ir::rules::Call::decode(row.name, &words, &operands, &numbers).expect("words of a writer");
        (row.rule)(&call).is_ok()
    };
    let mut pool = ArgWriter::new().tensor().ints(&[LARGE; 3]).ints(&[1; 3]).ints(&[0; 3]).ints(&[4; 3]).clone();
    assert!(!call("aten::max_pool3d_with_indices", &dense, pool.bool(false)));
    let _ = call("aten::replication_pad1d", &dense, ArgWriter::new().tensor().ints(&[LARGE, LARGE]));
    let _ = call("aten::argmax", &dense, ArgWriter::new().tensor().ints(&[]).bool(false));
    assert!(!call("aten::glu_backward", &dense, ArgWriter::new().tensor()));
    for view in ["aten::slice.Tensor", "aten::select.int"] {
        let mut args = ArgWriter::new().tensor().int(0).int(3).int(4).int(1).clone();
        let _ = call(view, &apart, &mut args);
    }
}
