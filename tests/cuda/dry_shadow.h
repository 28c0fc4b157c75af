// What the shadow offers: true values for libtorch's CUDA kernels over the stand-in. It is a library of its own, loaded
// after libtorch.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>

// An operator that was called: `before` are its arguments as they were given, `results` are its results, the last of a
// stack. Puts the CPU's kernel on the current stream, over the same memory. For callers that dispatch by themselves.
void dry_shadow(const c10::OperatorHandle& op, const torch::jit::Stack& before, const torch::jit::Stack& results);

extern "C" {
// From now on, all operators that this thread calls below autograd, and the threads of its backward passes, have
// values.
void dry_shadow_enable(bool on);
// What was put on streams, and what has no values: a line each, `kind operator: words`. Valid until the next call.
uint64_t dry_shadow_count();
const char* dry_shadow_report();
void dry_shadow_reset();
}
