// ltc::_service: one operator through which language bindings hand tensors to Rust and get tensors back.
#include <torch/library.h>

#include "shim.h"

struct LtcReply {
  std::vector<at::Tensor> tensors;
  std::string text;
  std::vector<int64_t> numbers;
};

namespace ltc {
namespace {
std::tuple<std::vector<Tensor>, std::string, std::vector<int64_t>> service(c10::string_view name,
                                                                           at::TensorList tensors,
                                                                           c10::string_view text, IntArrayRef numbers) {
  std::vector<const void*> pointers;
  for (auto& t : tensors) pointers.push_back(&t);
  LtcReply reply;
  LtcError err;
  check(V.service(V.ctx, name.data(), name.size(), pointers.data(), pointers.size(), text.data(), text.size(),
                  numbers.data(), numbers.size(), &reply, &err),
        err);
  return {std::move(reply.tensors), std::move(reply.text), std::move(reply.numbers)};
}
}  // namespace

void interrupted() {
  static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ltc::_interrupted", "");
  if (!op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd)) return;
  Stack none;
  op.callBoxed(none);
}

void register_service() {
  static torch::Library definition(torch::Library::DEF, "ltc", std::nullopt, __FILE__, __LINE__);
  // A language binding's kernel raises what its signal handler raised.
  definition.def("_interrupted() -> ()");
  definition.def("_service(str name, Tensor[] tensors, str text, int[] numbers) -> (Tensor[], str, int[])",
                 torch::dispatch(DispatchKey::CompositeImplicitAutograd, TORCH_FN(service)));
}
}  // namespace ltc

extern "C" {
void ltc_reply_tensor(LtcReply* r, void* t) {
  r->tensors.push_back(std::move(*static_cast<at::Tensor*>(t)));
  delete static_cast<at::Tensor*>(t);
}
void ltc_reply_text(LtcReply* r, const char* text, size_t len) { r->text.assign(text, len); }
void ltc_reply_numbers(LtcReply* r, const int64_t* numbers, uint32_t n) { r->numbers.assign(numbers, numbers + n); }
}
