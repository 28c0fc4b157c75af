//! Vector programs: what the machine does to one group of elements, before registers.
//!
//! A *group* is as many elements as a vector has 32-bit lanes. Values of 32 bits (`F32`, `I32`; `U8` as its number) are
//! one vector, values of 64 bits two, and a `Bool` is a mask of ones or zeros in either form. So lanes mix freely.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How wide vectors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// AVX2: 32 bytes, 16 registers.
    Ymm,
    /// AVX-512: 64 bytes, 32 registers.
    Zmm,
}

impl Width {
    pub(super) fn bytes(self) -> usize {
        match self {
            Width::Ymm => 32,
            Width::Zmm => 64,
        }
    }

    /// Elements of a group.
    pub(crate) fn group(self) -> usize {
        self.bytes() / 4
    }

    /// Registers values may live in. The last one of the machine is for instructions that need one more.
    pub(super) fn registers(self) -> usize {
        match self {
            Width::Ymm => 15,
            Width::Zmm => 31,
        }
    }
}

/// A vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct V(pub(super) u32);

/// A vector that is the same for all groups: one number in all its lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Uniform {
    pub(super) from: Origin,
    /// Of 64 bits.
    pub(super) wide: bool,
}

/// Where a uniform number lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Origin {
    /// In the numbers a run is given.
    Slot(u32),
    /// In the pool before the code.
    Pool(u32),
}

/// What an instruction does. `D` is 32-bit integers, `Q` 64-bit integers, `Ps` and `Pd` floats of these sizes; `Lo` and
/// `Hi` take the lower and upper half of a vector to a whole one of twice the size, and `Narrow` takes two to one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Op {
    AddPs,
    SubPs,
    MulPs,
    DivPs,
    /// The second where the first is not larger.
    MaxPs,
    /// The second where the first is not smaller.
    MinPs,
    AddPd,
    SubPd,
    MulPd,
    DivPd,
    MaxPd,
    MinPd,
    And,
    /// Not the first, and the second.
    Andn,
    Or,
    Xor,
    AddD,
    SubD,
    MulD,
    MaxD,
    MinD,
    AddQ,
    SubQ,
    /// Products of the low 32 bits of 64, unsigned.
    MulLow,
    SqrtPs,
    SqrtPd,
    AbsD,
    DToPs,
    /// Cut off; what does not fit gives the most negative number.
    PsToD,
    /// The immediate says how.
    RoundPs,
    RoundPd,
    ShlD,
    ShrD,
    SarD,
    ShlQ,
    ShrQ,
    /// Comparisons give masks; the immediate says which one.
    CmpPs,
    CmpPd,
    EqD,
    GtD,
    EqQ,
    GtQ,
    /// The second where the first, a mask, is set, else the third.
    BlendD,
    BlendQ,
    /// The third where this holds of the first and the second, else the fourth.
    Select(Comparison),
    /// The first times two to the power of the second, which is whole. AVX-512 only.
    ScalePs,
    /// First times second plus third.
    FmaPs,
    FmaPd,
    /// To the nearest half and back.
    RoundHalf,
    DToQLo,
    DToQHi,
    QToDNarrow,
    PsToPdLo,
    PsToPdHi,
    PdToPsNarrow,
    DToPdLo,
    DToPdHi,
    PdToDNarrow,
    Load(VecSlot),
    Store(VecSlot),
    /// Leaves the loop before this iteration's elements where any lane of a mask is set.
    Check,
    /// The first lane, of 32 bits, to a number of the run.
    Keep(u32),
    /// The first 64 bits.
    KeepWide(u32),
}

/// What is compared, lane by lane: floats as the immediate says, integers for equal or greater.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Comparison {
    Ps,
    Pd,
    EqD,
    GtD,
    EqQ,
    GtQ,
}

impl Comparison {
    /// The comparison an operation is.
    fn of(op: Op) -> Option<Comparison> {
        Some(match op {
            Op::CmpPs => Comparison::Ps,
            Op::CmpPd => Comparison::Pd,
            Op::EqD => Comparison::EqD,
            Op::GtD => Comparison::GtD,
            Op::EqQ => Comparison::EqQ,
            Op::GtQ => Comparison::GtQ,
            _ => return None,
        })
    }

    /// The operation that gives its mask.
    pub(super) fn mask(self) -> Op {
        match self {
            Comparison::Ps => Op::CmpPs,
            Comparison::Pd => Op::CmpPd,
            Comparison::EqD => Op::EqD,
            Comparison::GtD => Op::GtD,
            Comparison::EqQ => Op::EqQ,
            Comparison::GtQ => Op::GtQ,
        }
    }
}

/// Elements of a group in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct VecSlot {
    pub(super) buffer: u16,
    /// Elements from the first of the iteration.
    pub(super) first: u16,
    pub(super) form: Form,
}

/// How elements lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Form {
    /// Bytes, as numbers of 32 bits.
    Bytes,
    /// 16 bits, as numbers of 32.
    Words,
    /// Halves, as `F32`.
    Halves,
    /// As they are, of 32 bits.
    Vector32,
    /// As they are, of 64 bits: half a group.
    Vector64,
}

impl Form {
    /// Bytes of an element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Form::Bytes => 1,
            Form::Words | Form::Halves => 2,
            Form::Vector32 => 4,
            Form::Vector64 => 8,
        }
    }
}

/// One instruction.
#[derive(Clone, Debug)]
pub(super) struct VecInst {
    pub(super) op: Op,
    pub(super) imm: u8,
    pub(super) args: SmallVec<[V; 3]>,
    /// None of what is written to memory, or a check.
    pub(super) result: Option<V>,
}

/// Comparisons of floats, as the machine numbers them: false of NaN, but for `NE`.
pub(super) mod compare {
    pub(in super::super) const EQ: u8 = 0;
    pub(in super::super) const NE: u8 = 4;
    pub(in super::super) const LT: u8 = 0x11;
    pub(in super::super) const LE: u8 = 0x12;
    /// Either is NaN.
    pub(in super::super) const UNORDERED: u8 = 3;
}

/// Roundings to whole numbers, as the machine numbers them.
pub(super) mod rounding {
    pub(in super::super) const EVEN: u8 = 8;
    pub(in super::super) const FLOOR: u8 = 9;
    pub(in super::super) const CEIL: u8 = 10;
    pub(in super::super) const TRUNC: u8 = 11;
}

/// A vector program under construction, and done.
#[derive(Clone, Debug, Default)]
pub(super) struct Vectors {
    pub(super) insts: Vec<VecInst>,
    /// Per vector: whether it is a uniform one.
    pub(super) uniform: Vec<Option<Uniform>>,
    /// Numbers of the program itself.
    pub(super) pool: Vec<u64>,
    /// Vectors that instructions of a loop write again: uniform ones before its first iteration.
    pub(super) accumulators: Vec<V>,
    known: FxHashMap<Uniform, V>,
    pooled: FxHashMap<u64, u32>,
}

impl Vectors {
    fn fresh(&mut self, uniform: Option<Uniform>) -> V {
        self.uniform.push(uniform);
        V(self.uniform.len() as u32 - 1)
    }

    pub(super) fn op(&mut self, op: Op, args: &[V]) -> V {
        self.op_imm(op, args, 0)
    }

    pub(super) fn op_imm(&mut self, op: Op, args: &[V], imm: u8) -> V {
        let result = self.fresh(None);
        self.insts.push(VecInst { op, imm, args: SmallVec::from_slice(args), result: Some(result) });
        result
    }

    pub(super) fn load(&mut self, place: VecSlot) -> V {
        self.op(Op::Load(place), &[])
    }

    pub(super) fn store(&mut self, place: VecSlot, value: V) {
        self.insts.push(VecInst { op: Op::Store(place), imm: 0, args: SmallVec::from_slice(&[value]), result: None });
    }

    /// Leaves elements with this mask to somebody else.
    pub(super) fn check(&mut self, fails: V) {
        self.insts.push(VecInst { op: Op::Check, imm: 0, args: SmallVec::from_slice(&[fails]), result: None });
    }

    fn uniform(&mut self, uniform: Uniform) -> V {
        if let Some(&v) = self.known.get(&uniform) {
            return v;
        }
        let v = self.fresh(Some(uniform));
        self.known.insert(uniform, v);
        v
    }

    /// A number of the run in all lanes.
    pub(super) fn slot(&mut self, slot: u32, wide: bool) -> V {
        self.uniform(Uniform { from: Origin::Slot(slot), wide })
    }

    fn pooled(&mut self, bits: u64) -> Origin {
        let next = self.pool.len() as u32;
        let at = *self.pooled.entry(bits).or_insert(next);
        if at == next {
            self.pool.push(bits);
        }
        Origin::Pool(at)
    }

    fn constant(&mut self, bits: u64, wide: bool) -> V {
        let from = self.pooled(bits);
        self.uniform(Uniform { from, wide })
    }

    /// A vector to gather a reduction in: this number in all lanes at first.
    pub(super) fn accumulator(&mut self, start: f32) -> V {
        let from = self.pooled(u64::from(start.to_bits()));
        let v = self.fresh(Some(Uniform { from, wide: false }));
        self.accumulators.push(v);
        v
    }

    /// Writes an accumulator.
    pub(super) fn accumulate(&mut self, op: Op, args: &[V], accumulator: V) {
        self.insts.push(VecInst { op, imm: 0, args: SmallVec::from_slice(args), result: Some(accumulator) });
    }

    /// Writes the first lane of a value to a number of the run: all of 64 bits if `wide`.
    pub(super) fn keep(&mut self, slot: u32, value: V, wide: bool) {
        let op = if wide { Op::KeepWide(slot) } else { Op::Keep(slot) };
        self.insts.push(VecInst { op, imm: 0, args: SmallVec::from_slice(&[value]), result: None });
    }

    /// These bits in all lanes of 32 bits.
    pub(super) fn d(&mut self, bits: u32) -> V {
        self.constant(u64::from(bits), false)
    }

    /// These bits in all lanes of 64 bits.
    pub(super) fn q(&mut self, bits: u64) -> V {
        self.constant(bits, true)
    }

    pub(super) fn ps(&mut self, number: f32) -> V {
        self.d(number.to_bits())
    }

    pub(super) fn pd(&mut self, number: f64) -> V {
        self.q(number.to_bits())
    }

    /// Makes use of what only this width has, once the program is whole.
    pub(super) fn suit(&mut self, width: Width) {
        if width == Width::Zmm {
            self.select_by_bits();
        }
    }

    /// Where masks of comparisons are for selections only, these compare themselves: AVX-512 has a comparison's bits in
    /// a register of their own, and lanes of ones and zeros cost it two instructions more.
    fn select_by_bits(&mut self) {
        let is_selection = |op: Op| matches!(op, Op::BlendD | Op::BlendQ);
        let mut compared: FxHashMap<V, VecInst> = FxHashMap::default();
        for inst in &self.insts {
            let stays = |v: &V| !self.accumulators.contains(v);
            if let (Some(result), Some(_)) = (inst.result, Comparison::of(inst.op))
                && inst.args.iter().all(stays)
            {
                compared.insert(result, inst.clone());
            }
        }
        for inst in &self.insts {
            let first = usize::from(is_selection(inst.op));
            inst.args[first.min(inst.args.len())..].iter().for_each(|v| drop(compared.remove(v)));
        }
        self.insts.retain(|inst| !inst.result.is_some_and(|v| compared.contains_key(&v)));
        for inst in self.insts.iter_mut().filter(|inst| is_selection(inst.op)) {
            let Some(by) = compared.get(&inst.args[0]) else { continue };
            let Some(comparison) = Comparison::of(by.op) else { continue };
            inst.args = by.args.iter().chain(&inst.args[1..]).copied().collect();
            (inst.op, inst.imm) = (Op::Select(comparison), by.imm);
        }
    }

    /// Most vectors alive at once, uniform ones not counted.
    pub(super) fn pressure(&self) -> usize {
        let mut last = vec![0; self.uniform.len()];
        for (i, inst) in self.insts.iter().enumerate() {
            inst.args.iter().for_each(|a| last[a.0 as usize] = i);
        }
        let (mut live, mut most) = (0usize, 0);
        for (i, inst) in self.insts.iter().enumerate() {
            let mut dying = inst.args.clone();
            dying.sort_unstable();
            dying.dedup();
            dying.retain(|v| self.uniform[v.0 as usize].is_none() && last[v.0 as usize] == i);
            // A result may take the register of an operand that dies.
            live -= dying.len();
            if let Some(result) = inst.result.filter(|r| self.uniform[r.0 as usize].is_none()) {
                live += 1;
                most = most.max(live);
                live -= usize::from(last[result.0 as usize] <= i);
            }
        }
        most
    }

    /// The program for so many groups at once, instruction by instruction, so that each group's instructions stand in
    /// the other groups' waits. `group`: elements of one. Of each accumulator there are as many as `lanes` elements
    /// have groups, taken in turns.
    pub(super) fn interleaved(&self, times: usize, group: usize, lanes: usize) -> Vectors {
        let mut all = Vectors { pool: self.pool.clone(), ..Vectors::default() };
        let mut renamed: Vec<SmallVec<[V; 4]>> = Vec::with_capacity(self.uniform.len());
        for (v, uniform) in self.uniform.iter().enumerate() {
            let count = match uniform {
                Some(_) if self.accumulators.contains(&V(v as u32)) => lanes / group,
                Some(_) => 1,
                None => times,
            };
            renamed.push((0..count).map(|_| all.fresh(*uniform)).collect());
        }
        all.accumulators = self.accumulators.iter().flat_map(|v| renamed[v.0 as usize].iter().copied()).collect();
        let name = |v: V, copy: usize| {
            let names = &renamed[v.0 as usize];
            names[copy % names.len()]
        };
        // What gathers in an accumulator comes after all that gathered there before.
        let together = if self.accumulators.is_empty() { times } else { lanes / group };
        for first in (0..times).step_by(together) {
            for (inst, copy) in self.insts.iter().flat_map(|i| (first..first + together).map(move |copy| (i, copy))) {
                let moved = |p: VecSlot| VecSlot { first: p.first + (copy * group) as u16, ..p };
                let op = match inst.op {
                    Op::Load(p) => Op::Load(moved(p)),
                    Op::Store(p) => Op::Store(moved(p)),
                    op => op,
                };
                all.insts.push(VecInst {
                    op,
                    imm: inst.imm,
                    args: inst.args.iter().map(|&a| name(a, copy)).collect(),
                    result: inst.result.map(|r| name(r, copy)),
                });
            }
        }
        all
    }
}
