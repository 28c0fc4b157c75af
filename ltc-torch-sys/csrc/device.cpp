// What makes the lazy device a good citizen of libtorch: guard, hooks, generators.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>

#include "shim.h"

namespace ltc {
namespace {
thread_local c10::DeviceIndex t_device = 0;

c10::Device lazy_device(c10::DeviceIndex i) { return {kLazy, i}; }
void check_index(c10::DeviceIndex i) {
  TORCH_CHECK(i >= 0 && i < V.device_count, "ltc: invalid device index ", (int)i, ": there ",
              V.device_count == 1 ? "is" : "are", " ", V.device_count, " ltc device", V.device_count == 1 ? "" : "s");
}
c10::DeviceIndex exchange(c10::DeviceIndex i) {
  if (i < 0) return t_device;
  check_index(i);
  return std::exchange(t_device, i);
}

// Programs of one device run in order on its executor thread, so one stream is all there is.
c10::Stream only_stream(c10::Device d) {
  return c10::Stream(c10::Stream::DEFAULT, d.has_index() ? d : lazy_device(t_device));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  const c10::DeviceType served;
  explicit Guard(c10::DeviceType served) : served(served) {}
  c10::DeviceType type() const override { return served; }
  c10::Device exchangeDevice(c10::Device d) const override { return lazy_device(exchange(d.index())); }
  c10::Device getDevice() const override { return lazy_device(t_device); }
  void setDevice(c10::Device d) const override { exchange(d.index()); }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() >= 0 && d.index() < V.device_count) t_device = d.index();
  }
  // `backward` on a thread that recorded nothing before comes here first, with the gradient it begins at.
  c10::Stream getStream(c10::Device d) const override {
    keep_backward_here();
    return only_stream(d);
  }
  c10::Stream getDefaultStream(c10::Device d) const override { return getStream(d); }
  c10::Stream getNewStream(c10::Device d, int) const override { return getStream(d); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getStream(d); }
  // The engine comes here before each node, under the switches that the thread had when `backward` began.
  c10::Stream exchangeStream(c10::Stream s) const override {
    keep_backward_here();
    return only_stream(s.device());
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event) V.event_drop(event);
  }
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    void* now = nullptr;
    LtcError err;
    const int rc = V.event_new(V.ctx, s.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT, &now, &err);
    give_warnings();
    check(rc, err);
    destroyEvent(std::exchange(*event, now), s.device_index());
  }
  // Whoever uses a value waits for the program that makes it, on whichever device: there is no order left to make.
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    int reached = 1;
    LtcError err;
    if (event) check(V.event_is_reached(event, &reached, &err), err);
    return reached;
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    LtcError err;
    const int rc = V.event_wait(event, &err);
    give_warnings();
    check(rc, err);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    double seconds = 0;
    LtcError err;
    check(V.event_elapsed(from, to, &seconds, &err), err);
    return seconds * 1e3;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return V.device_count; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    auto& bits = capability.capability_data.capability_bits;
    bits = 0;
    for (size_t dtype = 0; dtype < c10::NUMBER_OF_DEVICE_CAPABILITIES; dtype++) {
      const int64_t none = 0;
      const LtcDims number{&none, &none, 0, (uint8_t)dtype};
      const void* layout = V.layout_new(&number);
      if (!layout) continue;
      bits |= uint64_t(1) << dtype;
      V.layout_drop(layout);
    }
    return capability;
  }
  bool queryStream(const c10::Stream& s) const override {
    int idle = 1;
    LtcError err;
    check(V.is_idle(V.ctx, s.device_index(), &idle, &err), err);
    return idle;
  }
  void synchronizeStream(const c10::Stream& s) const override { synchronizeDevice(s.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex i) const override {
    LtcError err;
    const int rc = V.synchronize(V.ctx, i, &err);
    give_warnings();
    check(rc, err);
  }
};

// A generator holds its state as an SSA value in a slot: seeding and drawing are recorded, reading the state syncs.
struct Generator final : c10::GeneratorImpl {
  LtcSlot slot;
  // Seeds come from any thread, and not all callers take the generator's mutex.
  std::atomic<uint64_t> last_seed = c10::default_rng_seed_val;
  explicit Generator(c10::DeviceIndex d)
      : c10::GeneratorImpl(lazy_device(d), DispatchKeySet(DispatchKey::PrivateUse1)) {
    V.storage_bytes(V.ctx, 0, d, &slot);
    seed_with(last_seed);
  }
  ~Generator() override { V.storage_drop(V.ctx, &slot); }
  void seed_with(uint64_t s) {
    LtcError err;
    check(V.seed(V.ctx, &slot, s, device().index(), &err), err);
    last_seed = s;
  }
  at::Generator state() const {
    void* g = nullptr;
    LtcError err;
    check(V.generator_state(V.ctx, &slot, device().index(), &g, &err), err);
    at::Generator r = *static_cast<at::Generator*>(g);
    delete static_cast<at::Generator*>(g);
    return r;
  }
  void set_current_seed(uint64_t s) override { seed_with(s); }
  c10::Device place() const { return place_of_device(device().index()); }
  void set_to(const at::Generator& state) {
    last_seed = state.current_seed();
    LtcError err;
    check(V.set_generator_state(V.ctx, &slot, device().index(), new at::Generator(state), &err), err);
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(!place().is_cpu(), "ltc: generators have no offset, as on CPU");
    at::Generator next = state();
    next.set_offset(offset);
    set_to(next);
  }
  uint64_t get_offset() const override {
    TORCH_CHECK(!place().is_cpu(), "ltc: generators have no offset, as on CPU");
    return state().get_offset();
  }
  uint64_t current_seed() const override { return last_seed; }
  uint64_t seed() override {
    seed_with(c10::detail::getNonDeterministicRandom());
    return last_seed;
  }
  void set_state(const c10::TensorImpl& s) override {
    auto g = generator_at(place(), c10::default_rng_seed_val);
    g.unsafeGetGeneratorImpl()->set_state(s);
    set_to(g);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return state().unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override {
    auto* g = new Generator(device().index());
    LtcOperand view{&slot, {nullptr, nullptr, 0, 255}, 0, 1, 0};
    V.storage_share(V.ctx, &g->slot, &slot, &view, device().index());
    g->last_seed = last_seed.load();
    return g;
  }
};

const at::Generator& default_generator(c10::DeviceIndex d) {
  static std::mutex mutex;
  static std::vector<at::Generator> all(V.device_count);
  if (d < 0) d = t_device;
  check_index(d);
  std::lock_guard<std::mutex> lock(mutex);
  if (!all[d].defined()) all[d] = at::make_generator<Generator>(d);
  return all[d];
}

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex d) const override { return default_generator(d); }
  at::Generator getNewGenerator(c10::DeviceIndex d) const override {
    return at::make_generator<Generator>(d < 0 ? t_device : d);
  }
  at::Device getDeviceFromPtr(void*) const override { return lazy_device(t_device); }
  bool isPinnedPtr(const void* p) const override { return is_pinned(p); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return V.device_count; }
  void setCurrentDevice(c10::DeviceIndex d) const override { exchange(d); }
  c10::DeviceIndex getCurrentDevice() const override { return t_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex d) const override { return exchange(d); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex d) const override { return exchange(d); }
  void resizePrivateUse1Bytes(const c10::Storage& s, size_t n) const override {
    resize_storage(static_cast<LazyStorage*>(s.unsafeGetStorageImpl()), n);
  }
};
}  // namespace

c10::DeviceIndex current_device() { return t_device; }
LtcSlot* generator_slot(const at::Generator& g) { return &static_cast<Generator*>(g.unsafeGetGeneratorImpl())->slot; }
LtcSlot* default_generator_slot(c10::DeviceIndex d) { return generator_slot(default_generator(d)); }

// Language bindings have no other way to a device's own generator: libtorch hands each only those it knows by name.
void register_generators() {
  static torch::Library definition(torch::Library::FRAGMENT, "ltc", std::nullopt, __FILE__, __LINE__);
  definition.def("_default_generator(int device) -> Generator?", [](int64_t device) {
    TORCH_CHECK(device >= 0 && device < V.device_count, "ltc: invalid device index ", device);
    return default_generator((c10::DeviceIndex)device);
  });
}

void register_device(const char* name) {
  if (!c10::is_privateuse1_backend_registered()) c10::register_privateuse1_backend(name);
  c10::SetAllocator(kLazy, lazy_allocator());
  c10::SetStorageImplCreate(kLazy, &make_storage);
  static c10::impl::DeviceGuardImplRegistrar guard(kLazy, new Guard(kLazy));
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  // Before that, no memory counts as pinned.
  at::globalContext().lazyInitDevice(kLazy);
}

// libtorch asks the guard of a type which device "the current one" of that type is, and takes its word for it.
void register_guard(c10::DeviceType alias) {
  static c10::impl::DeviceGuardImplRegistrar guard(alias, new Guard(alias));
}
}  // namespace ltc

extern "C" {
int ltc_generator_new(uint64_t seed, int32_t place, void** out, LtcError* err) {
  return ltc::guarded(err, [&] { *out = new at::Generator(ltc::generator_at(ltc::place_of(place), seed)); });
}
int ltc_generator_clone(const void* g, void** out, LtcError* err) {
  return ltc::guarded(err, [&] { *out = new at::Generator(static_cast<const at::Generator*>(g)->clone()); });
}
int ltc_cpu_generator_get(void** out, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator g = at::detail::getDefaultCPUGenerator();
    std::lock_guard<std::mutex> lock(g.mutex());
    *out = new at::Generator(g.clone());
  });
}
int ltc_cpu_generator_set(const void* from, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator g = at::detail::getDefaultCPUGenerator();
    auto state = static_cast<const at::Generator*>(from)->unsafeGetGeneratorImpl()->get_state();
    std::lock_guard<std::mutex> lock(g.mutex());
    g.unsafeGetGeneratorImpl()->set_state(*state);
  });
}
void ltc_generator_free(void* g) { delete static_cast<at::Generator*>(g); }
int ltc_generator_engine(const void* g, LtcEngine* out, LtcError* err) {
  return ltc::guarded(err, [&] {
    auto* impl = at::check_generator<at::CPUGeneratorImpl>(*static_cast<const at::Generator*>(g));
    auto data = impl->engine().data();
    *out = {data.seed_, data.left_, data.seeded_, data.next_, {}};
    std::copy(data.state_.begin(), data.state_.end(), out->state);
  });
}
int ltc_generator_set_engine(void* g, const LtcEngine* engine, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::mt19937_data_pod data{engine->seed, engine->left, engine->seeded != 0, engine->next, {}};
    std::copy(engine->state, engine->state + data.state_.size(), data.state_.begin());
    at::mt19937 next;
    next.set_data(data);
    at::check_generator<at::CPUGeneratorImpl>(*static_cast<at::Generator*>(g))->set_engine(next);
  });
}
int ltc_default_generator_get(int32_t device, void** state, uint64_t* seed, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator g = ltc::default_generator(device);
    *seed = g.current_seed();
    if (state) *state = new at::Tensor(g.get_state());
  });
}
int ltc_default_generator_slot(int32_t device, const LtcSlot** out, LtcError* err) {
  return ltc::guarded(err, [&] { *out = ltc::default_generator_slot((c10::DeviceIndex)device); });
}
int ltc_default_generator_set(int32_t device, const void* state, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator g = ltc::default_generator(device);
    g.set_state(*static_cast<const at::Tensor*>(state));
  });
}
int ltc_default_generator_seed(int32_t device, uint64_t seed, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator g = ltc::default_generator(device);
    g.set_current_seed(seed);
  });
}
}
