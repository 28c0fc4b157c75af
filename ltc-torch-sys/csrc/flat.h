// A call flattened from the interpreter stack into what Rust records.
#pragma once
#include <list>

#include "shim.h"

namespace ltc {
struct Flat {
  c10::SmallVector<uint64_t, 40> words;        // the argument blob (ltc-ir/src/args.rs)
  c10::SmallVector<uint64_t, 8> numbers;       // runtime numbers
  c10::SmallVector<LtcOperand, 8> operands;    // tensors and generators, in order of appearance
  c10::SmallVector<const Tensor*, 8> tensors;  // per operand; null for generators
  c10::SmallVector<uint64_t, 48> shapes;       // layouts and whatever else decides the result layouts
  std::list<Tensor> keep;                      // host tensors imported for this call
  int32_t device = -1;
  int eager = -1;          // LtcReason: cannot be recorded
  bool integral = false;   // a tensor before this argument has an integer dtype
  bool elsewhere = false;  // a device that is named is not that of the operands
  bool bits = false;       // an operand is a lazy conjugate or negative view
  uint32_t writes = 0;

  void head(uint8_t tag, uint8_t flags = 0, uint8_t dtype = 0, uint32_t len = 0) {
    words.push_back((uint64_t)tag | (uint64_t)flags << 8 | (uint64_t)dtype << 16 | (uint64_t)len << 32);
  }
  uint64_t hash(uint32_t op) const {
    uint64_t h = op * 0x9E3779B97F4A7C15ull;
    auto mix = [&h](uint64_t w) {
      h = (h ^ w) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    };
    for (auto w : words) mix(w);
    for (auto w : shapes) mix(w);
    return h;
  }
  LtcRecord record(const OpInfo& o) const {
    LtcRecord r{};
    r.op = o.rust;
    r.words = words.data();
    r.nwords = words.size();
    r.numbers = numbers.data();
    r.nnumbers = numbers.size();
    r.operands = operands.data();
    r.noperands = operands.size();
    r.device = device;
    return r;
  }
};
}  // namespace ltc
