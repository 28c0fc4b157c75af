// Sparse tensors on the device (docs/adr/0021-sparse-tensors-are-lazy-parts.md).
#pragma once
#include "shim.h"

// Called while something is captured, with the context of LtcVTable: an operator takes or makes a sparse tensor, which
// no replay does. To be given once, after ltc_init.
extern "C" void ltc_on_sparse(void (*tell)(const void* ctx, const char* op, size_t len, int32_t device));

namespace ltc {
// Indices and values of a sparse tensor: two tensors, or three where one index is compressed.
using Parts = c10::SmallVector<Tensor, 3>;
inline bool is_sparse(const Tensor& t) {
  return t.defined() && (t.unsafeGetTensorImpl()->is_sparse() || t.unsafeGetTensorImpl()->is_sparse_compressed());
}
Parts parts_of(const Tensor& t);
// A sparse tensor like another one, of these parts and on their device.
Tensor with_parts(const Tensor& like, const Parts& parts);
void set_parts(const Tensor& self, const Tensor& like, const Parts& parts);  // self := with_parts(like, parts)
void register_sparse();
}  // namespace ltc
