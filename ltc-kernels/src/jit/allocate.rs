//! Registers: one pass over a loop's instructions, next uses known.
//!
//! Where registers run out, the vector needed last makes room. A uniform one is read anew where it is needed; others go
//! to scratch memory.

use smallvec::SmallVec;

use super::vector::{Op, Uniform, V, VecInst, Vectors};

/// A machine register, by number.
pub(super) type Reg = u8;

/// What the machine does, in registers.
#[derive(Clone, Debug)]
pub(super) enum AllocEvent {
    Op {
        op: Op,
        imm: u8,
        args: SmallVec<[Reg; 3]>,
        /// Any of what has none.
        result: Reg,
    },
    /// A vector to a slot of scratch memory.
    Spill(Reg, u32),
    Reload(Reg, u32),
    Broadcast(Reg, Uniform),
    Copy {
        from: Reg,
        to: Reg,
    },
}

/// A loop in registers. Accumulators have the first ones, in their order.
#[derive(Debug, Default)]
pub(super) struct Allocated {
    /// Done once before the loop.
    pub(super) before: Vec<AllocEvent>,
    pub(super) steps: Vec<AllocEvent>,
    /// Slots of scratch memory.
    pub(super) slots: u32,
}

const NEVER: u32 = u32::MAX;

struct Allocation<'a> {
    program: &'a Vectors,
    /// Per vector the next instruction that uses it.
    next: Vec<u32>,
    register: Vec<Option<Reg>>,
    slot: Vec<Option<u32>>,
    /// Per register what it holds.
    holds: Vec<Option<V>>,
    free: Vec<Reg>,
    free_slots: Vec<u32>,
    out: Allocated,
}

/// The uniform vectors that are worth a register for the whole loop: those used most, as many as there is room for.
fn hoisted(program: &Vectors, registers: usize) -> Vec<V> {
    let mut uses = vec![0u32; program.uniform.len()];
    program.insts.iter().flat_map(|i| &i.args).for_each(|a| uses[a.0 as usize] += 1);
    let mut uniforms: Vec<V> = (0..program.uniform.len() as u32).map(V).collect();
    uniforms.retain(|v| program.uniform[v.0 as usize].is_some() && uses[v.0 as usize] > 0);
    uniforms.retain(|v| !program.accumulators.contains(v));
    uniforms.sort_by_key(|v| std::cmp::Reverse(uses[v.0 as usize]));
    let room = registers.saturating_sub(program.pressure() + program.accumulators.len());
    if uniforms.len() > room {
        // The others pass through registers of their own.
        uniforms.truncate(room.saturating_sub(2));
    }
    uniforms
}

/// Gives every vector of a loop a register.
pub(super) fn allocate(program: &Vectors, registers: usize) -> Allocated {
    let count = program.uniform.len();
    // Per instruction and operand: the next use after it.
    let mut after: Vec<SmallVec<[u32; 3]>> = vec![SmallVec::new(); program.insts.len()];
    let mut next = vec![NEVER; count];
    for (i, inst) in program.insts.iter().enumerate().rev() {
        after[i] = inst.args.iter().map(|a| next[a.0 as usize]).collect();
        inst.args.iter().for_each(|a| next[a.0 as usize] = i as u32);
    }
    let mut a = Allocation {
        program,
        next,
        register: vec![None; count],
        slot: vec![None; count],
        holds: vec![None; registers],
        free: (0..registers as Reg).rev().collect(),
        free_slots: Vec::new(),
        out: Allocated::default(),
    };
    for v in program.accumulators.iter().copied().chain(hoisted(program, registers)) {
        let (Some(register), Some(uniform)) = (a.free.pop(), program.uniform[v.0 as usize]) else { break };
        a.out.before.push(AllocEvent::Broadcast(register, uniform));
        // Held by nobody, so never taken away.
        a.register[v.0 as usize] = Some(register);
        a.next[v.0 as usize] = NEVER;
    }
    for (inst, after) in program.insts.iter().zip(&after) {
        a.instruction(inst, after);
    }
    a.out
}

impl Allocation<'_> {
    fn instruction(&mut self, inst: &VecInst, after: &[u32]) {
        let mut args: SmallVec<[Reg; 3]> = SmallVec::new();
        for &v in &inst.args {
            args.push(self.fetch(v, &inst.args));
        }
        let mut dead: SmallVec<[Reg; 3]> = SmallVec::new();
        for (i, (&v, &register)) in inst.args.iter().zip(&args).enumerate() {
            let at = v.0 as usize;
            if self.holds[usize::from(register)] != Some(v) {
                continue;
            }
            // Of one operand twice, both places say the same.
            self.next[at] = after[i];
            if after[i] == NEVER {
                self.holds[usize::from(register)] = None;
                self.register[at] = None;
                self.free_slots.extend(self.slot[at].take());
                dead.push(register);
            }
        }
        let Some(result) = inst.result else {
            self.out.steps.push(AllocEvent::Op { op: inst.op, imm: inst.imm, args, result: 0 });
            self.free.extend(dead);
            return;
        };
        if self.program.accumulators.contains(&result) {
            let target = self.register[result.0 as usize].expect("accumulators have registers");
            self.out.steps.push(AllocEvent::Op { op: inst.op, imm: inst.imm, args, result: target });
            return self.free.extend(dead);
        }
        let fused = matches!(inst.op, Op::FmaPs | Op::FmaPd);
        let target = if fused {
            // The result takes the place of an operand: the sum's or a factor's.
            [2, 0, 1].into_iter().map(|i| args[i]).find(|r| dead.contains(r))
        } else {
            dead.first().copied()
        };
        let target = match target {
            Some(register) => {
                dead.retain(|r| *r != register);
                register
            }
            None => {
                let register = self.take(&inst.args);
                if fused {
                    self.out.steps.push(AllocEvent::Copy { from: args[2], to: register });
                    args[2] = register;
                }
                register
            }
        };
        self.out.steps.push(AllocEvent::Op { op: inst.op, imm: inst.imm, args, result: target });
        self.free.extend(dead);
        if self.next[result.0 as usize] == NEVER {
            return self.free.push(target);
        }
        self.register[result.0 as usize] = Some(target);
        self.holds[usize::from(target)] = Some(result);
    }

    /// The register of an operand, which is read from memory if it is in none.
    fn fetch(&mut self, v: V, needed: &[V]) -> Reg {
        let at = v.0 as usize;
        if let Some(register) = self.register[at] {
            return register;
        }
        let register = self.take(needed);
        self.out.steps.push(match (self.program.uniform[at], self.slot[at]) {
            (Some(uniform), _) => AllocEvent::Broadcast(register, uniform),
            (None, Some(slot)) => AllocEvent::Reload(register, slot),
            (None, None) => unreachable!("a vector that left its register went to a slot"),
        });
        self.register[at] = Some(register);
        self.holds[usize::from(register)] = Some(v);
        register
    }

    /// A register for something new. `needed` vectors stay where they are.
    fn take(&mut self, needed: &[V]) -> Reg {
        if let Some(register) = self.free.pop() {
            return register;
        }
        let far = |r: &usize| {
            let v = self.holds[*r]?;
            let kept = self.program.uniform[v.0 as usize].is_some() || self.slot[v.0 as usize].is_some();
            (!needed.contains(&v)).then(|| (u64::from(self.next[v.0 as usize]) * if kept { 2 } else { 1 }, *r))
        };
        let (_, register) = (0..self.holds.len()).filter_map(|r| far(&r)).max().expect("more registers than operands");
        if let Some(v) = self.holds[register].take() {
            let at = v.0 as usize;
            self.register[at] = None;
            if self.program.uniform[at].is_none() && self.slot[at].is_none() {
                let slot = self.free_slots.pop().unwrap_or_else(|| {
                    self.out.slots += 1;
                    self.out.slots - 1
                });
                self.slot[at] = Some(slot);
                self.out.steps.push(AllocEvent::Spill(register as Reg, slot));
            }
        }
        register as Reg
    }
}
