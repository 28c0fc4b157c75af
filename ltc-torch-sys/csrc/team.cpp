// Work on libtorch's own threads, so that there is one team.
//
// `at::parallel_for` is a template whose OpenMP part would have to be compiled here, against whichever OpenMP libtorch
// brought along. A tensor iterator runs it inside libtorch.
#include <dlfcn.h>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/from_blob.h>

#include "shim.h"

using namespace ltc;

namespace {
// A function of a library that libtorch is linked with; null where this libtorch does without it.
template <class F>
F* of_libtorch(const char* name) {
  Dl_info where;
  if (!dladdr(reinterpret_cast<void*>(&at::get_num_threads), &where)) return nullptr;
  // Looks through the library's own dependencies; the handle is kept, as libtorch is.
  void* library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}
}  // namespace

extern "C" int ltc_num_threads() { return at::get_num_threads(); }

extern "C" void ltc_set_num_threads(int threads) { at::set_num_threads(threads); }

extern "C" LtcThreads ltc_threads(LtcThreads wanted) {
  static auto* openmp = of_libtorch<void(int)>("omp_set_num_threads");
  static auto* onemkl = of_libtorch<int(int)>("MKL_Set_Num_Threads_Local");
  LtcThreads before{-1, -1};
  if (openmp && wanted.kernels > 0) {
    before.kernels = at::get_num_threads();
    openmp(wanted.kernels);
  }
  if (onemkl && wanted.products >= 0) before.products = onemkl(wanted.products);
  return before;
}

extern "C" int ltc_parallel_for(int64_t n, int64_t grain, void* ctx, void (*body)(void*, int64_t, int64_t),
                                LtcError* err) {
  return guarded(err, [&] {
    if (n <= grain || at::get_num_threads() == 1) return body(ctx, 0, n);
    // Positions are told apart by address; nothing is read there.
    char* base = reinterpret_cast<char*>(64);
    Tensor positions = at::from_blob(base, {n}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    auto iterator = at::TensorIteratorConfig().set_check_mem_overlap(false).add_const_input(positions).build();
    iterator.for_each(
        [&](char** data, const int64_t*, int64_t size0, int64_t size1) {
          int64_t begin = data[0] - base;
          body(ctx, begin, begin + size0 * size1);
        },
        grain);
  });
}
