//! The machine that programs run on: its memory and its name.

use ltc_backend::Capacity;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, System};

/// How much memory this process may take, and how much of that is left; `None` where the system does not tell.
pub(crate) fn capacity() -> Option<Capacity> {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let machine = (system.available_memory(), system.total_memory());
    // A container may have less than the machine.
    let (available, total) = system
        .cgroup_limits()
        .map_or(machine, |container| (machine.0.min(container.free_memory), machine.1.min(container.total_memory)));
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    (total > 0).then(|| Capacity { available: bytes(available), total: bytes(total) })
}

/// The processor, by its maker's name for it.
pub(crate) fn name() -> String {
    let mut system = System::new();
    system.refresh_cpu_list(CpuRefreshKind::nothing());
    let brand = system.cpus().first().map(|cpu| cpu.brand().trim()).filter(|brand| !brand.is_empty());
    brand.unwrap_or("CPU").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_memory_and_a_name() {
        let Capacity { available, total } = capacity().expect("this system tells");
        assert!(0 < available && available <= total, "{available} of {total}");
        assert!(!name().is_empty());
    }
}
