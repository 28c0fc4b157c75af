//! Rows with reductions, from the first stage to the last in one function: their elements stay in the first-level
//! cache, what they are reduced to in registers and among the run's numbers.
//!
//! Reductions have the bits of `reduce/reducers.rs`: the same lanes, joined in the same order.

use std::ops::Range;

use iced_x86::{Code, IcedError, Instruction, Register};
use ltc_ir::DType;

use super::{
    MOST_ROWS, RowInput, RowPart, RowStage, Target,
    allocate::allocate,
    code::{Compiled, exponents, short_exponents, width},
    emit::{COUNT, Emitter, INDEX, LIMIT, MOST_GROUPS, MOST_INSTRUCTIONS, Machine},
    gather::Gathered,
    lower::{Shape, lower_after},
    most_rows,
    vector::{Vectors, Width},
};

/// A loop over the elements of some rows: its program, and how many groups it takes at once.
struct Part {
    rows: Range<usize>,
    program: Vectors,
    groups: usize,
}

/// How wide vectors of one value per row are, of which one lane counts: the wider, the longer quotients and roots take.
const OF_ROWS: Width = Width::Ymm;

/// Registers that instructions need beside what lives through the loop.
const PASSING: usize = 3;

/// Most registers of accumulators: those that have short names, but for some.
fn most_accumulators(width: Width) -> usize {
    if width == Width::Zmm { 12 } else { 8 }
}

impl RowPart {
    /// The program for rows side by side.
    fn program(&self, rows: Range<usize>, of: &RowInput, width: Width, uniforms: &[u64]) -> Option<Vectors> {
        let RowPart { ir, slots, inputs, targets } = self;
        let first = MOST_ROWS as u32 * of.own;
        // A power the row itself has may be another for each.
        if exponents(ir, slots).any(|(slot, _)| slot < first) {
            return None;
        }
        let known = short_exponents(exponents(ir, slots), uniforms)?;
        let mut vectors = Vectors::default();
        for row in rows {
            let slots: Vec<Option<u32>> = slots.iter().map(|slot| slot.map(|slot| of.number(slot, row))).collect();
            let inputs: Vec<(u16, DType)> = inputs.iter().map(|&(buffer, d)| (of.buffer(buffer, row), d)).collect();
            let target = |target: &Target| match *target {
                Target::Elements { buffer, dtype, staged } => {
                    Target::Elements { buffer: of.buffer(buffer, row), dtype, staged }
                }
                Target::Number(slot) => Target::Number(of.number(slot, row)),
                Target::Reduced(op) => Target::Reduced(op),
            };
            let targets: Vec<Target> = targets.iter().map(target).collect();
            let shape = Shape { ir, slots: &slots, inputs: &inputs, targets: &targets, exponents: &known };
            lower_after(&shape, width, &mut vectors)?;
        }
        vectors.suit(width);
        Some(vectors)
    }
}

impl RowInput {
    /// A number of the first row, as that of another.
    fn number(&self, slot: u32, row: usize) -> u32 {
        if slot < self.own { slot + row as u32 * self.own } else { slot }
    }

    fn buffer(&self, buffer: u16, row: usize) -> u16 {
        buffer + (row * self.buffers) as u16
    }

    /// How many groups a loop takes at once; `None` where registers do not suffice.
    fn groups(&self, program: &Vectors, width: Width) -> Option<usize> {
        let least = if program.accumulators.is_empty() { 1 } else { self.lanes / width.group() };
        let gathers = program.accumulators.len() * least;
        if gathers > most_accumulators(width) {
            return None;
        }
        let fits = |groups: &usize| {
            let elements = groups * width.group();
            self.line.is_multiple_of(elements) && self.each.is_multiple_of(elements)
        };
        let room = width.registers() - gathers - PASSING;
        // Those that gather are done one after the other.
        let by_registers = if gathers > 0 { MOST_GROUPS } else { room / program.pressure().max(1) };
        let by_length = MOST_INSTRUCTIONS / program.insts.len().max(1);
        let most = by_registers.min(by_length).clamp(least, MOST_GROUPS);
        (1..=most / least).map(|times| times * least).filter(fits).max()
    }

    /// The function of rows, and how many it takes side by side: more than a loop has registers for one loop after the
    /// other, so that the ends of one's reductions, which wait for each other, stand beside the next one.
    fn assemble(&self, width: Width, uniforms: &[u64]) -> Option<(Machine, usize)> {
        let most = most_rows(self.each);
        [(MOST_ROWS, 4), (4, 4), (2, 2), (1, 1)].into_iter().filter(|(all, _)| *all <= most).find_map(
            |(all, at_once)| {
                let mut stages = Vec::new();
                for stage in &self.stages {
                    let mut parts = Vec::new();
                    for first in (0..all).step_by(at_once) {
                        let rows = first..first + at_once;
                        let program = stage.elements.program(rows.clone(), self, width, uniforms)?;
                        let groups = self.groups(&program, width)?;
                        parts.push(Part { rows, program, groups });
                    }
                    stages.push((parts, stage.row.program(0..all, self, OF_ROWS, uniforms)?));
                }
                Some((self.build(&stages, all, width).ok()?, all))
            },
        )
    }

    fn build(&self, stages: &[(Vec<Part>, Vectors)], rows: usize, width: Width) -> Result<Machine, IcedError> {
        let all = || stages.iter().flat_map(|(parts, row)| parts.iter().map(|p| &p.program).chain([row]));
        let pool: Vec<u64> = all().flat_map(|program| program.pool.iter().copied()).collect();
        let mut e = Emitter::begin(pool.len(), self.buffers * rows, width)?;
        for (stage, (parts, row)) in self.stages.iter().zip(stages) {
            for part in parts {
                if !part.program.insts.is_empty() {
                    self.elements(&mut e, stage, part)?;
                }
                e.pool += part.program.pool.len() as u32;
            }
            let code = allocate(row, OF_ROWS.registers());
            e.width = OF_ROWS;
            e.steps(&code.before, code.slots)?;
            e.steps(&code.steps, code.slots)?;
            e.width = width;
            e.pool += row.pool.len() as u32;
        }
        e.end(&pool)
    }

    /// The loop over the rows' elements, line by line.
    fn elements(&self, e: &mut Emitter, stage: &RowStage, part: &Part) -> Result<(), IcedError> {
        let group = e.width.group();
        let code = allocate(&part.program.interleaved(part.groups, group, self.lanes), e.width.registers());
        let is_long = self.each > self.line;
        let of_row = |row: usize| {
            let number = move |slot: u32| self.number(slot, row);
            stage.reduced.iter().map(move |&(op, value, total)| (op, number(value), number(total)))
        };
        let gathered: Vec<Gathered> = part.rows.clone().flat_map(of_row).map(|of| Gathered { of, is_long }).collect();
        if is_long {
            gathered.iter().try_for_each(|g| g.begin(e))?;
        }
        e.put(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX))?;
        let next_line = e.at;
        if is_long {
            e.put(Instruction::with2(Code::Mov_r64_rm64, LIMIT, INDEX))?;
            e.put(Instruction::with2(Code::Add_rm64_imm32, LIMIT, self.line as i32))?;
            e.put(Instruction::with2(Code::Cmp_r64_rm64, LIMIT, COUNT))?;
            e.put(Instruction::with2(Code::Cmovg_r64_rm64, LIMIT, COUNT))?;
        } else {
            e.put(Instruction::with2(Code::Mov_r64_rm64, LIMIT, COUNT))?;
        }
        e.steps(&code.before, code.slots)?;
        let top = e.at;
        e.steps(&code.steps, code.slots)?;
        e.put(Instruction::with2(Code::Add_rm64_imm32, INDEX, (part.groups * group) as i32))?;
        e.put(Instruction::with2(Code::Cmp_r64_rm64, INDEX, LIMIT))?;
        e.put(Instruction::with_branch(Code::Jl_rel32_64, top))?;
        let (each, all) = (self.lanes / group, gathered.len() * (self.lanes / group));
        for (i, gathered) in gathered.iter().enumerate() {
            gathered.end(e, i * each..(i + 1) * each, all)?;
        }
        if is_long {
            e.put(Instruction::with2(Code::Cmp_r64_rm64, INDEX, COUNT))?;
            e.put(Instruction::with_branch(Code::Jl_rel32_64, next_line))?;
        }
        Ok(())
    }

    /// The function, compiled for this machine. `None` if the kernel is better run stage by stage.
    pub(super) fn compile(&self, uniforms: &[u64]) -> Option<Compiled> {
        let width = width()?;
        let (machine, rows) = self.assemble(width, uniforms)?;
        let mut code = Compiled::new(&machine, width)?;
        code.rows = rows;
        for part in self.stages.iter().flat_map(|stage| [&stage.elements, &stage.row]) {
            code.expect(&part.ir, &part.slots, uniforms);
        }
        Some(code)
    }
}
