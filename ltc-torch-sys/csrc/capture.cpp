// Captures: which storages and generators a thread uses, so that a recorded step can be bound to them and replayed; and
// what it takes for granted of the tensors that the program keeps.
#include <cstring>
#include <set>

#include "shim.h"

struct LtcHold {
  c10::Storage storage;
  at::Generator generator;  // undefined for the default generators, which live for ever
  const LtcSlot* slot;
};

// Tensors that were used, as they were. The references to those on the device are weak: the program keeps them or does
// not.
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
struct LtcChecks {
  struct Used {
    WeakTensor tensor;
    bool requires_grad;
    const c10::StorageImpl* storage;
  };
  std::vector<Used> used;
  std::vector<std::pair<at::Tensor, at::Tensor>> numbers;  // 0-dim tensors of the host, with copies
};

namespace ltc {
// A storage or generator that was used. The reference to a storage is weak: autograd adds gradients up in place only if
// nobody else holds them, and a capture must not change that. A weak reference still keeps the address from being
// reused.
struct Used {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  at::Generator generator;  // undefined for storages and default generators
  bool is_storage;
  const LtcSlot* slot;
};
struct Capture {
  std::set<std::pair<const void*, const LtcSlot*>> seen;  // storages (null for generators) with their slots
  std::vector<Used> used;
  bool with_checks;
  std::set<const c10::TensorImpl*> known;
  std::vector<WeakTensor> tensors;
  std::vector<Tensor> numbers;
};
std::atomic<int> g_captures{0};
namespace {
thread_local Capture* t_capture = nullptr;
thread_local bool t_paused = false;
void end() {
  if (!t_capture) return;
  delete std::exchange(t_capture, nullptr);
  g_captures--;
}
}  // namespace

void note_use(c10::StorageImpl* s, const LtcSlot* slot) {
  if (!t_capture || t_paused || !t_capture->seen.emplace(s, slot).second) return;
  V.touched(V.ctx, slot);
  auto held = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(s);
  t_capture->used.push_back({c10::weak_intrusive_ptr<c10::StorageImpl>(held), at::Generator(), true, slot});
}
void note_use(const at::Generator& g, const LtcSlot* slot) {
  if (!t_capture || t_paused || !t_capture->seen.emplace(nullptr, slot).second) return;
  V.touched(V.ctx, slot);
  auto none = c10::weak_intrusive_ptr<c10::StorageImpl>(c10::intrusive_ptr<c10::StorageImpl>());
  t_capture->used.push_back({std::move(none), g, false, slot});
}
void note_operand(const Tensor& t) {
  if (!t_capture || !t_capture->with_checks || t_paused || !t_capture->known.insert(t.unsafeGetTensorImpl()).second)
    return;
  t_capture->tensors.emplace_back(t.getIntrusivePtr());
}
void note_number(const Tensor& t) {
  if (t_capture && t_capture->with_checks && !t_paused) t_capture->numbers.push_back(t);
}
}  // namespace ltc

using namespace ltc;

extern "C" {
int ltc_capture_checks(LtcChecks** out, LtcError* err) {
  return guarded(err, [&] {
    auto checks = std::make_unique<LtcChecks>();
    if (t_capture) {
      for (auto& weak : t_capture->tensors) {
        const Tensor t(weak.lock());
        // One that only this function holds is gone.
        if (!t.defined() || t.use_count() == 1 || !t.is_leaf()) continue;
        checks->used.push_back({weak, t.requires_grad(), t.storage().unsafeGetStorageImpl()});
      }
      for (auto& t : t_capture->numbers) checks->numbers.emplace_back(t, t.detach().clone());
      t_capture->numbers.clear();
    }
    *out = checks.release();
  });
}
int ltc_checks_hold(const LtcChecks* checks, int* holds, LtcError* err) {
  return guarded(err, [&] {
    *holds = 1;
    for (auto& u : checks->used) {
      const Tensor t(u.tensor.lock());
      if (t.defined() && (t.requires_grad() != u.requires_grad || t.storage().unsafeGetStorageImpl() != u.storage))
        *holds = 0;
    }
    for (auto& [t, then] : checks->numbers)
      if (t.dtype() != then.dtype() || t.dim() != 0 ||
          std::memcmp(t.const_data_ptr(), then.const_data_ptr(), then.itemsize()) != 0)
        *holds = 0;
  });
}
void ltc_checks_free(LtcChecks* checks) { delete checks; }
void ltc_capture_pause(int pauses) { t_paused = pauses; }
void ltc_capture_begin(bool with_checks) {
  end();
  t_paused = false;
  t_capture = new Capture;
  t_capture->with_checks = with_checks;
  g_captures++;
}
uint32_t ltc_capture_count(void) { return t_capture ? t_capture->used.size() : 0; }
uint32_t ltc_capture_end(LtcHold** holds, uint32_t room) {
  if (!t_capture) return 0;
  uint32_t n = 0;
  if (holds)
    for (auto& u : t_capture->used) {
      if (n == room) break;
      auto storage = u.storage.lock();
      bool is_gone = u.is_storage && !storage;
      holds[n++] = is_gone ? nullptr : new LtcHold{c10::Storage(std::move(storage)), std::move(u.generator), u.slot};
    }
  end();
  return n;
}
const LtcSlot* ltc_hold_slot(const LtcHold* h) { return h->slot; }
int ltc_hold_is_shared(const LtcHold* h) {
  if (h->storage) return h->storage.use_count() > 1;
  return !h->generator.defined() || h->generator.getIntrusivePtr().use_count() > 1;
}
int ltc_hold_tensor(const LtcHold* h, const LtcDims* d, int64_t offset, void** out, LtcError* err) {
  return guarded(err, [&] {
    TORCH_CHECK(h->storage, "a generator is no tensor");
    *out = new Tensor(tensor_of(h->storage, *d, offset));
  });
}
void ltc_hold_free(LtcHold* h) { delete h; }
}
