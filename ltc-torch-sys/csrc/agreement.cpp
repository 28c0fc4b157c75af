// Whether all ranks are about to do the same: asked before each collective where TORCH_DISTRIBUTED_DEBUG is DETAIL.
//
// Engines cannot tell: collectives that are not one another's wait for each other, or take each other's bytes.
#include "agreement.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/debug.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <cstring>

namespace ltc {
namespace {
using std::string;

// Of what a rank says; more is cut off.
constexpr int64_t kBytes = 1024;

// Code of torch's and ours is not who called.
bool is_of_a_library(const string& file) {
  return file.find("-packages/torch/") != string::npos || file.find("/torch_ltc/") != string::npos;
}

string called_at() {
  for (const auto& frame : torch::jit::tracer::pythonCallstack()) {
    const auto& source = frame.range.source();
    if (source && source->filename() && !is_of_a_library(*source->filename()))
      return *source->filename() + ":" + std::to_string(source->starting_line_no());
  }
  return "";
}
}  // namespace

bool asks_others() { return c10d::debug_level() == c10d::DebugLevel::Detail; }

string group_argument(const string& name) { return asks_others() ? name + "\n" + called_at() : name; }
string group_name(const string& argument) { return argument.substr(0, argument.find('\n')); }

void agree(const Engine& e, const string& group, const string& what) {
  const auto end = group.find('\n');
  string said = what;
  if (end != string::npos && end + 1 < group.size()) said += " at " + group.substr(end + 1);
  said.resize(kBytes - 1);
  Tensor mine = at::zeros({kBytes}, at::kByte), all = at::empty({e->getSize() * kBytes}, at::kByte);
  std::memcpy(mine.mutable_data_ptr(), said.data(), said.size());
  if (is_on_streams(e)) {
    Tensor there = all.to(c10::kCUDA), given = mine.to(c10::kCUDA);
    e->_allgather_base(there, given)->wait();
    all.copy_(there);
  } else {
    e->_allgather_base(all, mine)->wait();
  }
  const char* texts = static_cast<const char*>(all.const_data_ptr());
  string told;
  bool agrees = true;
  for (int rank = 0; rank < e->getSize(); rank++) {
    const string text = texts + rank * kBytes;
    told += "\n  rank " + std::to_string(rank) + ": " + text;
    agrees = agrees && text.substr(0, text.find(" at ")) == what.substr(0, kBytes - 1);
  }
  TORCH_CHECK(agrees, "ranks disagree about the next collective of the process group ", group_name(group), ":", told);
}
}  // namespace ltc
