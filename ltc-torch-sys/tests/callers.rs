//! Return addresses that were recognised are those that unwinding finds, whatever called whom before.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::{cell::RefCell, hint::black_box};

use ltc_torch_sys::Callers;
use proptest::prelude::*;

/// A call of one of the functions below by the one before it.
#[derive(Clone, Copy, Debug)]
enum Call {
    Plain,
    Aligned,
    Wide,
    Twice(bool),
    Dynamic,
    Recursive(u8),
}

#[derive(Default)]
struct World {
    callers: Callers,
    /// What walks found, by their numbers.
    chains: Vec<Vec<usize>>,
    /// Chains found at leaves, beside what `backtrace` said there.
    seen: Vec<(Vec<usize>, Vec<usize>)>,
}

type Way<'a> = &'a RefCell<World>;

#[inline(never)]
fn leaf(way: Way<'_>) {
    let world = &mut *way.borrow_mut();
    let chains = &mut world.chains;
    let found = world.callers.here(&mut |chain| {
        chains.push(chain.to_vec());
        Some(chains.len() as u32 - 1)
    });
    let mut unwound = Vec::new();
    backtrace::trace(|frame| {
        unwound.push(frame.ip() as usize);
        true
    });
    let found = world.chains[found.expect("this machine's stacks are understood") as usize].clone();
    world.seen.push((found, unwound));
}

fn go(way: Way<'_>, calls: &[Call]) {
    let Some((call, rest)) = calls.split_first() else { return leaf(way) };
    match *call {
        Call::Plain => plain(way, rest),
        Call::Aligned => aligned(way, rest),
        Call::Wide => wide(way, rest),
        Call::Twice(second) => twice(way, rest, second),
        Call::Dynamic => {
            let call: fn(Way<'_>, &[Call]) = go;
            black_box(call)(way, rest);
        }
        Call::Recursive(depth) => recursive(way, rest, depth),
    }
    black_box(());
}

#[inline(never)]
fn plain(way: Way<'_>, rest: &[Call]) {
    go(way, rest);
    black_box(());
}

/// Its frame is aligned, so its size follows from where it is.
#[inline(never)]
fn aligned(way: Way<'_>, rest: &[Call]) {
    #[repr(align(128))]
    struct Page([u8; 128]);
    let page = black_box(Page([1; 128]));
    go(way, rest);
    black_box(page.0);
}

#[inline(never)]
fn wide(way: Way<'_>, rest: &[Call]) {
    let words = black_box([0usize; 40]);
    go(way, rest);
    black_box(words);
}

/// One function, two lines.
#[inline(never)]
fn twice(way: Way<'_>, rest: &[Call], second: bool) {
    if black_box(second) {
        go(way, rest);
    }
    if black_box(!second) {
        go(way, rest);
    }
    black_box(());
}

#[inline(never)]
fn recursive(way: Way<'_>, rest: &[Call], depth: u8) {
    if depth == 0 {
        go(way, rest)
    } else {
        recursive(way, rest, depth - 1)
    }
    black_box(());
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        Just(Call::Plain),
        Just(Call::Aligned),
        Just(Call::Wide),
        any::<bool>().prop_map(Call::Twice),
        Just(Call::Dynamic),
        (0u8..4).prop_map(Call::Recursive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn callers_are_those_that_unwinding_finds(
        ways in prop::collection::vec(prop::collection::vec(call(), 0..8), 1..6),
        again in 1usize..4,
    ) {
        let way = RefCell::new(World::default());
        for _ in 0..again {
            for calls in &ways {
                go(&way, calls);
            }
        }
        let world = way.into_inner();
        for (found, unwound) in &world.seen {
            // Behind the leaf's own frame, in which the two walks began at different calls.
            let behind = unwound.iter().position(|ip| *ip == found[1]);
            let behind = behind.expect("the leaf's caller was unwound");
            let both = (found.len() - 1).min(unwound.len() - behind);
            prop_assert!(both > 8, "{} addresses", found.len());
            prop_assert_eq!(&found[1..=both], &unwound[behind..behind + both]);
            prop_assert!(unwound.len() - behind <= found.len() + 1 || found.len() == 96, "it ends early");
        }
        // A walk is kept once, and recognised from then on.
        prop_assert!(world.chains.len() <= ways.len(), "{} walks of {} ways", world.chains.len(), ways.len());
    }
}
