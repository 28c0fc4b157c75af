// What stand-ins must look like for kernels that refuse zeros and ones.
#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <unordered_map>

#include "shim.h"

namespace ltc {
namespace {
using Answer = std::optional<uint8_t>;

// Integers are divisors, or positions that count from 1.
Answer ones(const OpInfo&, Stack&, const std::vector<Tensor>& made) {
  for (auto& t : made)
    if (at::isIntegralType(t.scalar_type(), true)) t.fill_(1);
  return {};
}

// Matrices have full rank, or are positive definite.
Answer eyes(const OpInfo&, Stack&, const std::vector<Tensor>& made) {
  for (auto& t : made) {
    if (t.dim() < 2) continue;
    t.zero_();
    t.diagonal(0, -2, -1).fill_(1);
  }
  return {};
}

// Residuals of a tall system are left out where the rank that these drivers compute is not full.
Answer least_squares(const OpInfo& o, Stack& stack, const std::vector<Tensor>& made) {
  const size_t base = stack.size() - o.args.size();
  const auto& a = stack[base].toTensor();
  const auto driver = stack[base + 3].isString() ? stack[base + 3].toStringRef() : "gelsy";
  if (a.dim() >= 2 && a.size(-2) > a.size(-1) && (driver == "gelss" || driver == "gelsd")) return LTC_WHY_DATA;
  return eyes(o, stack, made);
}

// Lengths of segments add up to the size of the data: not checked with `unsafe`.
Answer segments(const OpInfo& o, Stack& stack, const std::vector<Tensor>&) {
  stack[stack.size() - o.args.size() + 6] = true;
  return {};
}
// How many values a mask takes is told by its values: a number stands for them. A wrong count raises when the program
// runs; what is written must not be what is read, which the number would not show, as the kernel has it: it fills with
// a single value.
Answer masked_values(const OpInfo& o, Stack& stack, const std::vector<Tensor>&) {
  const size_t base = stack.size() - o.args.size();
  for (const IValue& index : stack[base + 1].toListRef())
    if (index.isTensor() &&
        (index.toTensor().scalar_type() == at::kBool || index.toTensor().scalar_type() == at::kByte)) {
      const Tensor values = stack[base + 2].toTensor();
      if (values.numel() != 1 || stack[base + 3].toBool()) at::assert_no_overlap(stack[base].toTensor(), values);
      stack[base + 2] = values.new_zeros({});
    }
  return {};
}
}  // namespace

StandInRule stand_in_rule(const std::string& base) {
  static const std::unordered_map<std::string, StandInRule> rules = {
      {"div", ones},
      {"div_", ones},
      {"floor_divide", ones},
      {"floor_divide_", ones},
      {"fmod", ones},
      {"fmod_", ones},
      {"remainder", ones},
      {"remainder_", ones},
      {"linalg_lu_solve", ones},
      {"linalg_ldl_solve", ones},
      {"lu_unpack", ones},
      {"cholesky", eyes},
      {"cholesky_inverse", eyes},
      {"linalg_lstsq", least_squares},
      {"segment_reduce", segments},
      {"index_put", masked_values},
      {"index_put_", masked_values},
      {"_index_put_impl_", masked_values},
      {"_unsafe_index_put", masked_values},
  };
  auto found = base.rfind("aten::", 0) == 0 ? rules.find(base.substr(6)) : rules.end();
  return found == rules.end() ? nullptr : found->second;
}
}  // namespace ltc
