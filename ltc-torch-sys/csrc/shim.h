// What the C++ files of the shim share. See abi.h for the border to Rust.
//
// Model (design.md section 4): a storage on the lazy device has no memory. It holds one Rust `Storage` (a slot) that
// knows its current SSA value. A tensor is storage + sizes + strides + offset as on any libtorch device, so libtorch's
// own view and metadata kernels work unchanged.
#pragma once
#include <ATen/Tensor.h>
#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "abi.h"

struct LtcFailure {
  int32_t cls = LTC_RUNTIME;
  std::string text;
  std::exception_ptr cause;  // the C++ exception behind the text, rethrown as it was
};
inline LtcError::~LtcError() {
  if (C10_UNLIKELY(failure)) delete failure;
}

namespace torch {
class Library;
}

namespace ltc {
using at::IntArrayRef;
using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using c10::ScalarType;
using c10::TensorImpl;
using torch::jit::Stack;

constexpr auto kLazy = c10::DeviceType::PrivateUse1;
extern LtcVTable V;

uint64_t layout_ambient(c10::Device place);  // ambient.cpp

// ---- warnings (warnings.cpp) ----
struct WarningKeeper final : c10::WarningHandler {
  void process(const c10::Warning& w) override;
};
WarningKeeper& warning_keeper();  // keeps what kernels warn of
void give_warnings();             // what was kept, to the handler of this thread

// ---- errors ----
void interrupted();                      // raises what a language binding's signal handler raised, if it can
void register_interrupted();             // the operator it calls for that
[[noreturn]] void raise(LtcError& err);  // throws the libtorch exception of this class
inline void check(int rc, LtcError& err) {
  if (C10_UNLIKELY(rc != 0)) raise(err);
}
void capture(LtcError* err) noexcept;  // inside catch (...): the exception in flight as class and text
template <class F> int guarded(LtcError* err, F f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    capture(err);
    return 1;
  }
}

// A GPU was lost. To give memory there back would be an error in a destructor, which ends the process: it is left
// alone.
bool is_device_lost();

// Dispatch state for shape inference and execution, whatever modes the caller has active: below autograd, no modes.
// `counts`: writes in place count as tensors' versions.
struct BelowAutograd {
  c10::impl::ForceDispatchKeyGuard guard;
  c10::AutoGradMode grad{true};  // some kernels keep what backward needs only then: asked and run alike
  explicit BelowAutograd(bool counts = false);
};

// ---- places (place.cpp): where the values of a lazy device are ----
c10::Device place_of(int32_t code);                  // by its number in abi.h
c10::Device place_of_device(c10::DeviceIndex lazy);  // of a lazy device
// Of a tensor that says which device it is on; the CPU for all others.
inline bool is_on_cpu(const Tensor& t) {
  const c10::Device d = t.device();
  return d.type() != kLazy || !d.has_index() || place_of_device(d.index()).is_cpu();
}
// While it lives, what this thread asks of a place goes to the one stream of ours there. Below `BelowAutograd`, which
// sets all dispatch keys.
struct OnPlace {
  std::optional<c10::Device> device;  // what were current before; none on the CPU, which has none
  std::optional<c10::Stream> stream;
  std::optional<c10::impl::IncludeDispatchKeyGuard> key;
  explicit OnPlace(c10::Device place);
  ~OnPlace();
  OnPlace(const OnPlace&) = delete;
};
// While it lives, this thread's stream of ours at a place is another one, on which nobody else puts anything.
struct OnStream {
  const c10::Stream stream;
  explicit OnStream(c10::Device place);
  ~OnStream();
  OnStream(const OnStream&) = delete;
};
// The same values and layout there: the tensor itself if it is there. Waits only on the way to the host.
Tensor at_place(const Tensor& t, c10::Device place);
at::Generator generator_at(c10::Device place, uint64_t seed);
at::Generator default_generator_at(c10::Device place);

// ---- layouts ----
using Dims = c10::SmallVector<int64_t, 5>;
struct Layout {  // C++ view of an ltc-ir layout, with the Rust handle
  ScalarType dtype = ScalarType::Undefined;
  Dims sizes, strides;
  size_t nbytes = 0;
  const void* rust = nullptr;
  Layout() = default;
  Layout(ScalarType dt, IntArrayRef sz, IntArrayRef st);
  Layout(Layout&& o) noexcept;
  Layout& operator=(Layout&& o) noexcept;
  Layout(const Layout&) = delete;
  ~Layout();
  bool is(ScalarType dt, IntArrayRef sz, IntArrayRef st) const {
    return dtype == dt && IntArrayRef(sizes) == sz && IntArrayRef(strides) == st;
  }
};
int64_t storage_elements(IntArrayRef sizes, IntArrayRef strides);  // one past the last element touched
LtcDims dims_of(const TensorImpl* t);
inline LtcDims dims_of(const Layout& l) {
  return {l.sizes.data(), l.strides.data(), (uint32_t)l.sizes.size(), (uint8_t)l.dtype};
}

// ---- storages and tensors (storage.cpp) ----
struct LazyStorage final : c10::StorageImpl {
  LtcSlot slot;
  LazyStorage(size_t nbytes, c10::DataPtr p, LtcSlot s);
  void release_resources() override;
  ~LazyStorage() override;
  bool live = true;
};
c10::Allocator* lazy_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* p);
std::mutex& pinned_mutex();  // where pinned memory is
c10::DataPtr fake_data(size_t nbytes, c10::DeviceIndex device);
c10::intrusive_ptr<c10::StorageImpl> make_storage(c10::StorageImpl::use_byte_size_t, c10::SymInt nbytes, c10::DataPtr p,
                                                  c10::Allocator* a, bool resizable);
inline bool is_lazy(const Tensor& t) { return t.defined() && t.unsafeGetTensorImpl()->device_type() == kLazy; }
// ---- captures (capture.cpp) ----
struct Capture;
extern std::atomic<int> g_captures;  // how many threads capture: mostly none, and then no thread-local is read
void note_use(c10::StorageImpl* s, const LtcSlot* slot);
void note_use(const at::Generator& g, const LtcSlot* slot);
void note_operand(const Tensor& t);  // a tensor of the device that a call is given
void note_number(const Tensor& t);   // a 0-dim tensor of the host that a call is given in place of a number
template <class T> void touch(const T& used, const LtcSlot* slot) {
  if (C10_UNLIKELY(g_captures.load(std::memory_order_relaxed) > 0)) note_use(used, slot);
}

LazyStorage* storage_of(const TensorImpl* t);  // raises for tensors without one (functional or fake wrappers, sparse)
// The part of a storage a tensor covers.
inline bool covers_storage(const TensorImpl* t, const LazyStorage* s) {
  return t->storage_offset() == 0 && (size_t)t->numel() * t->itemsize() == s->nbytes() &&
      t->is_non_overlapping_and_dense();
}
LtcOperand operand_of(const Tensor& t, uint8_t flags = 0);
Tensor new_tensor(const Layout& l, LtcSlot slot, c10::DeviceIndex device);
Tensor new_uninit(const Layout& l, c10::DeviceIndex device);
Tensor new_uninit(ScalarType dt, IntArrayRef sizes, IntArrayRef strides, c10::DeviceIndex device);
Tensor tensor_of(c10::Storage storage, const LtcDims& d, int64_t offset);
Tensor alias(const Tensor& base, ScalarType dt, IntArrayRef sizes, IntArrayRef strides, int64_t offset);
void resize_storage(LazyStorage* s, size_t nbytes);

// ---- transfers (storage.cpp) ----
Tensor to_host(const Tensor& t);    // current value on CPU; do not write into it
void check_dense(const Tensor& t);  // refuses sparse, quantized and nested tensors
// Takes (not copies) a dense tensor on the CPU or at the device's place.
Tensor from_value(const Tensor& value, c10::DeviceIndex device);
void write_value(const Tensor& self, const Tensor& value);  // self := value (broadcast, cast)

// ---- operators (op_info.cpp) ----
enum class Kind : uint8_t { Other, Tensor, TensorList, OptTensorList, Device, Generator, Storage };
struct ArgInfo {
  Kind kind = Kind::Other;
  int write_if = -1;  // a bool argument that must be true for `write` to hold
  bool write = false, number = false, floating = false, number_list = false, out = false;
  bool selects = false;  // which elements to take: it says nothing of the dtype
};
struct RetInfo {
  Kind kind = Kind::Other;
  int write_arg = -1, view_arg = -1;
};
struct OpInfo;
// Makes a call on stand-ins acceptable to its kernel; a reason where none can speak for all values.
using StandInRule = std::optional<uint8_t> (*)(const OpInfo& o, Stack& stack, const std::vector<Tensor>& made);
StandInRule stand_in_rule(const std::string& base);  // stand_in.cpp
struct OpInfo {
  std::string name;  // aten::add.Tensor
  const void* rust = nullptr;
  std::vector<ArgInfo> args;
  std::vector<RetInfo> rets;
  // What the call does.
  bool mutates = false;            // it writes an argument
  bool overwrites = false;         // it writes the argument without reading it
  bool outputs = false;            // it writes into what it is given for that (`out=`)
  bool counts_changes = false;     // of what it writes: nobody above the recording kernel does
  bool has_view = false;           // a result shows an argument's memory
  bool random = false;             // it draws from a generator
  bool implied_generator = false;  // which is the device's own: no argument names one
  bool over_lists = false;         // what it does with each tensor of its lists, another operator does with one
  // How its results' layouts are found.
  bool structured = false;          // libtorch has a meta function for it
  bool kernel_checks_more = false;  // than that function does
  bool composite = false;           // one kernel for all devices, of other operators
  bool meta_is_kernel = false;      // such a kernel makes the result's layout
  bool probe = true;                // the kernel may be run on stand-ins: it is libtorch's own and safe for any values
  // What the layouts depend on.
  bool mask_index = false;          // a mask among its indices selects as many elements as are true
  bool numbers_shape = false;       // values of numbers
  bool checks_numbers = false;      // its kernel refuses numbers outside a range
  bool plain_args = true;           // tensors, numbers and modes: none that says which elements, or where results lie
  bool elementwise = false;         // and each element of a result follows from one element of each operand
  bool compares = false;            // which says how two elements compare
  StandInRule stand_in = nullptr;   // beside zeros and ones
  std::optional<uint8_t> eager;     // always runs eagerly, for this LtcReason
  std::atomic<bool> forced{false};  // the user's configuration wants it run eagerly
  uint32_t id = 0;
  std::optional<OperatorHandle> handle;
};
Kind kind_of(const c10::TypePtr& type);
OpInfo& op_info(const OperatorHandle& h);       // made on first use, lives for ever
OpInfo* find_op(const std::string& full_name);  // by `aten::add.Tensor`
// While it lives, kernels called from this thread start no threads if it came along into a forked child: OpenMP would
// wait for those it had in the parent.
struct Alone {
  LtcThreads before{-1, -1};
  Alone();
  ~Alone();
};
std::mutex& op_mutex();                 // what is known of operators
void pool_lock(bool lock);              // or unlocks: for the time of a fork
std::mutex& default_generator_mutex();  // who sets the state of libtorch's default generator and sets it back

template <class F> IValue map_tensors(const IValue& v, Kind k, F f) {
  switch (k) {
    case Kind::Tensor: return v.isTensor() ? IValue(f(v.toTensor())) : v;
    case Kind::TensorList: {
      if (!v.isTensorList()) return v;
      c10::List<Tensor> l;
      for (const Tensor& t : v.toTensorVector()) l.push_back(f(t));
      return l;
    }
    case Kind::OptTensorList: {
      if (v.isNone()) return v;
      c10::List<std::optional<Tensor>> l;
      for (const IValue& e : v.toListRef())
        l.push_back(e.isNone() ? std::optional<Tensor>() : std::optional<Tensor>(f(e.toTensor())));
      return l;
    }
    default: return v;
  }
}

// ---- shape inference (infer.cpp) ----
enum class OutKind : uint8_t { New, Undefined, Written, View };
struct OutMeta {
  OutKind kind = OutKind::New;
  Layout layout;       // New, View
  int64_t offset = 0;  // View
};
struct Resize {  // a written argument changes shape
  uint32_t operand;
  Layout layout;
};
struct ShapeEntry {
  uint64_t hash = 0;
  std::vector<uint64_t> key;
  std::optional<uint8_t> eager;
  std::vector<OutMeta> outs;        // flattened returns
  std::vector<uint32_t> ret_count;  // outs per return
  std::vector<Resize> resizes;
  const void* signature = nullptr;  // Rust's; null when nothing is recorded
  uint32_t fresh = 0;               // New outs
  bool only_views = false;
  bool plain = false;  // one new or one written tensor is all there is to it
  ShapeEntry() = default;
  ShapeEntry(const ShapeEntry&) = delete;
  ~ShapeEntry() {
    if (signature) V.signature_drop(signature);
  }
};
struct Flat;  // a flattened call (record.cpp)
// Result layouts of a call, from the thread's cache or computed. The entry stays valid until the next call of this.
const ShapeEntry& infer(const OpInfo& o, const Stack& stack, const Flat& flat);
const ShapeEntry* known(const OpInfo& o, const Flat& flat);  // only from the cache

// ---- recording (record.cpp) ----
// The autograd engine would run backward of a PrivateUse1 graph on a worker thread of its own: two context switches per
// backward, no lines of Python, and at the interpreter's end a thread that still drops Python's objects, which aborts.
// With this thread-local switch it stays on the caller, as for CPU. The engine sets and restores the switches around
// each node, so this is said at every call: once is not enough.
void keep_backward_here();
void run(const OpInfo& o, Stack* stack);
// Counts a write in a tensor's version. Some operators (`_foreach_add_`) need this call: their eager kernels count a
// write by calling other operators that write to the tensor, which recording does not do.
void count_change(const Tensor& t);
void run_eager(const OpInfo& o, Stack* stack, uint8_t reason);  // eager.cpp
// Registers a kernel that takes arguments as libtorch has them, where tensors and numbers give one tensor.
bool register_plain(torch::Library& m, const char* name, const OpInfo& o);

// ---- device (device.cpp) ----
void register_device(const char* name);
void register_generators();
void register_guard(c10::DeviceType alias);  // of another type whose devices are ours
c10::DeviceIndex current_device();
LtcSlot* generator_slot(const at::Generator& g);
LtcSlot* default_generator_slot(c10::DeviceIndex device);

// ---- kernels (kernels.cpp, register.cpp) ----
void swallow_out(const OperatorHandle& op, DispatchKeySet, Stack* stack);  // infer.cpp
void register_kernels();
void register_explicit(torch::Library& m);
void register_autocast();
}  // namespace ltc
