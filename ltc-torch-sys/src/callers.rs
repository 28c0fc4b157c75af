//! Who called: the return addresses on this thread's stack, innermost first, at a cost that every recorded operator can
//! bear.
//!
//! Unwinding is a function of the registers it starts with, of the frame descriptions in the program's `.eh_frame`, and
//! of the words it reads from the stack. The words that an unwinding read are kept. If a later one starts with the same
//! registers, and the same words stand at the same places, each of its steps would be the same, so it would find the
//! same callers: comparing some thirty words replaces unwinding. The kept unwinding to compare with is a guess, the one
//! that followed the last one before; a wrong guess costs an unwinding by frame descriptions that were looked up
//! before.
//!
//! Where a frame is described in a way that is not understood, or the stack is not this thread's own (a coroutine's),
//! the chain ends there. It is never guessed at.

use std::{hash::BuildHasher, ops::Range};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::frames::{self, Base, Frame, Start};

/// Longest chain.
const DEPTH: usize = 96;
/// Unwindings kept per thread, before it begins anew.
const KEPT: usize = 1 << 13;
const WORD: usize = size_of::<usize>();

/// What a thread knows of its callers.
#[derive(Debug, Default)]
pub struct Callers {
    /// This thread's stack; empty where nothing is known of it.
    stack: Option<Range<usize>>,
    /// How frames are laid out, by an address in their code.
    frames: FxHashMap<usize, Option<Frame>>,
    walks: Vec<Walk>,
    /// Walks by the hash of what they began with and read.
    known: FxHashMap<u64, usize>,
    last: usize,
    /// What the walk being made reads, and the return addresses among it.
    words: Vec<(usize, usize)>,
    chain: Vec<usize>,
}

/// One unwinding.
#[derive(Debug)]
struct Walk {
    start: Start,
    /// Whether `start.frame` was used.
    uses_frame: bool,
    /// Every word that was read, in order: where, and what stood there.
    words: Box<[(usize, usize)]>,
    name: Option<u32>,
    /// The walk that followed last time.
    next: usize,
}

impl Walk {
    /// Whether unwinding from `start` now would be this walk.
    #[inline]
    fn is_now(&self, start: Start) -> bool {
        (self.start.code, self.start.stack) == (start.code, start.stack)
            && (!self.uses_frame || self.start.frame == start.frame)
            // Words are compared in order: a word is read only if the words before it have proved that its frame is
            // alive.
            && self.words.iter().all(|&(at, word)| frames::word(at) == word)
    }
}

/// What the frame pointer was in a caller: nobody reads it before a frame needs it.
#[derive(Clone, Copy)]
enum FramePointer {
    Start,
    SavedAt(usize),
}

impl Callers {
    /// What `name` says of the return addresses on this thread's stack, innermost first; it is asked once for each walk
    /// that is new. `None`: it has no answer, or this machine's stacks are not understood (all but x86-64 Linux).
    // One copy, so that walks begin at one place.
    #[inline(never)]
    pub fn here(&mut self, name: &mut dyn FnMut(&[usize]) -> Option<u32>) -> Option<u32> {
        let start = frames::registers()?;
        if let Some(last) = self.walks.get(self.last) {
            let guess = last.next;
            if let Some(walk) = self.walks.get(guess).filter(|w| w.is_now(start)) {
                self.last = guess;
                return walk.name;
            }
        }
        self.look_up(start, name)
    }

    #[cold]
    fn look_up(&mut self, start: Start, name: &mut dyn FnMut(&[usize]) -> Option<u32>) -> Option<u32> {
        let stack = self.stack.get_or_insert_with(|| frames::stack_of_thread().unwrap_or_default()).clone();
        if !stack.contains(&start.stack) {
            return None;
        }
        let uses_frame = self.unwind(start, stack.end);
        let key = FxBuildHasher.hash_one((start.code, start.stack, uses_frame.then_some(start.frame), &self.words));
        let known = self.known.get(&key).copied().filter(|&w| self.walks[w].is_now(start));
        let found = known.unwrap_or_else(|| {
            if self.walks.len() == KEPT {
                self.walks.clear();
                self.known.clear();
            }
            let new = self.walks.len();
            let words = self.words.as_slice().into();
            self.walks.push(Walk { start, uses_frame, words, name: name(&self.chain), next: new });
            self.known.insert(key, new);
            new
        });
        if let Some(last) = self.walks.get_mut(self.last) {
            last.next = found;
        }
        self.last = found;
        self.walks[found].name
    }

    /// Fills `words` and `chain`. Whether the frame pointer it started with mattered.
    fn unwind(&mut self, start: Start, end: usize) -> bool {
        let Self { words, chain, frames: known, .. } = self;
        words.clear();
        chain.clear();
        let mut uses_frame = false;
        let (mut code, mut stack, mut pointer) = (start.code, start.stack, FramePointer::Start);
        // The stack holds whole words between where its top was and its end.
        let mut read = |at: usize, above: usize| {
            (at.is_multiple_of(WORD) && at >= above && at.checked_add(WORD)? <= end).then(|| {
                let word = frames::word(at);
                words.push((at, word));
                word
            })
        };
        while chain.len() < DEPTH {
            let Some(frame) = *known.entry(code).or_insert_with(|| frames::describe(code)) else { break };
            let base = match (frame.base, pointer) {
                (Base::Stack, _) => Some(stack),
                (Base::Frame, FramePointer::SavedAt(at)) => read(at, start.stack),
                (Base::Frame, FramePointer::Start) => {
                    uses_frame = true;
                    Some(start.frame)
                }
            };
            let Some(top) = base.and_then(|b| b.checked_add_signed(frame.offset)).filter(|&t| t > stack) else { break };
            let Some(caller) = read(top.wrapping_sub(WORD), stack) else { break };
            if caller == 0 {
                break;
            }
            if let Some(offset) = frame.saved {
                pointer = FramePointer::SavedAt(top.wrapping_add_signed(offset));
            }
            chain.push(caller);
            // The return address belongs to the instruction behind the call.
            (code, stack) = (caller - 1, top);
        }
        uses_frame
    }
}
