//! Any argument words: readers end, and the strict one is stricter. And calls of the operators of the table, whose
//! shape rules answer or refuse.
#![no_main]

#[path = "../../tests/properties/calls.rs"]
mod calls;

use libfuzzer_sys::{arbitrary::Unstructured, fuzz_target};
use ltc_ir::{ArgReader, args};

fuzz_target!(|data: &[u8]| {
    let words: Vec<u64> = data.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("eight"))).collect();
    let mut reader = ArgReader::new(&words);
    assert!(reader.by_ref().count() <= words.len());
    assert!(args::check(&words).is_err() || !reader.error());
    let _ = calls::call(&mut Unstructured::new(data));
});
