// What c10d's ProcessGroupGloo.hpp names of gloo, declared. The torch package has that header and gloo's compiled code,
// but none of gloo's headers. It holds these types by pointer only, so that nothing depends on what is in them.
#pragma once
#include <chrono>

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
