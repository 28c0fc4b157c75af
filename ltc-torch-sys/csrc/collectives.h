// What collectives.cpp, which runs collectives, and process_group.cpp, which records them, share.
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>

#include "shim.h"

namespace ltc {
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Engine = c10::intrusive_ptr<c10d::Backend>;

// Whether an engine puts its work on streams of a GPU, rather than on threads of the host.
inline bool is_on_streams(const Engine& e) { return e->getBackendName() == "nccl"; }

// The engine that serves a group's tensors on the lazy device, from now on also for programs that name the group.
// Raises where the group has none of its own.
Engine open_group(const Group& group);
// Waits for what was sent to others and is on its way, then lets all engines go.
void close_groups();
// Sends all that is recorded on any device, and waits for it.
void wait_for_all();
// The device's order of collectives, as a value that each of them reads and writes. All are of one device: which other
// processes meet in which order would be left to chance.
const Tensor& token(c10::DeviceIndex device);

void define_collectives();    // collectives.cpp
void serve_process_groups();  // process_group.cpp
}  // namespace ltc
