// The C ABI between the C++ half (libtorch) and the Rust half of ltc-torch-sys. Only sparse.h adds to it.
//
// Rules for every function: it never throws and never unwinds. Fallible functions return 0 on success; otherwise they
// fill `err` (see LtcError) and return 1. "owned" pointers pass responsibility to the receiver, all others are borrowed
// for the call.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The numbers of these enums are those of Rust's types; a test in ltc-torch-sys/src/ffi.rs compares them.
// ---- argument blobs: ltc-ir's Tag and ArgFlags ----
enum LtcTag {
  LTC_NONE = 0,
  LTC_TENSOR = 1,
  LTC_HOST_SCALAR = 2,
  LTC_INT = 3,
  LTC_BOOL = 4,
  LTC_FLOAT = 5,
  LTC_NUMBER = 6,
  LTC_STR = 7,
  LTC_INTS = 8,
  LTC_FLOATS = 9,
  LTC_BOOLS = 10,
  LTC_TENSORS = 11,
  LTC_NUMBERS = 12,
  LTC_GENERATOR = 13,
  LTC_DEVICE = 14,
};
enum LtcArgFlags { LTC_MUT = 1, LTC_FRESH = 2, LTC_WRAPPED = 4 };

// ---- operator properties: ltc-ir's Props ----
enum LtcProps { LTC_RANDOM = 1, LTC_MUTATES = 2, LTC_OVERWRITES = 4, LTC_DATA_DEPENDENT = 8 };
// Told by define_op besides: each element of a result follows from one element of each operand; and says how two
// compare.
enum LtcToldProps { LTC_ELEMENTWISE = 65536, LTC_COMPARES = 131072 };

// ---- why an operator runs eagerly: ltc-ir's FallbackReason ----
enum LtcReason { LTC_WHY_DATA = 0, LTC_WHY_NO_SHAPE = 1, LTC_WHY_ARGUMENT = 2, LTC_WHY_FORCED = 3 };

// ---- exception classes: ltc-ir's ErrorClass ----
enum LtcErrorClass {
  LTC_RUNTIME = 0,
  LTC_INDEX = 1,
  LTC_VALUE = 2,
  LTC_TYPE = 3,
  LTC_NOT_IMPLEMENTED = 4,
  LTC_LINALG = 5,
  LTC_OUT_OF_MEMORY = 6,
  LTC_INTERRUPTED = 7,
  LTC_DEVICE_LOST = 8
};

// Null until there is a failure: most calls have none, and then it costs nothing. Rust fills it through ltc_error_set.
struct LtcFailure;
typedef struct LtcError {
#ifdef __cplusplus
  LtcFailure* failure = nullptr;
  LtcError() = default;
  LtcError(const LtcError&) = delete;
  ~LtcError();
#else
  struct LtcFailure* failure;
#endif
} LtcError;
void ltc_error_set(LtcError* err, int32_t cls, const char* text, size_t len);
void ltc_error_clear(LtcError* err);
int32_t ltc_error_get(const LtcError* err, const char** text, size_t* len);  // returns the class

// A Rust storage (`Recorder::Storage`) lives inside the C++ storage object. Rust values may be moved bytewise.
#define LTC_SLOT_BYTES 56
typedef struct LtcSlot {
  uint64_t bytes[LTC_SLOT_BYTES / 8];
} LtcSlot;

typedef struct LtcDims {  // dtype, sizes and strides of a tensor
  const int64_t* sizes;
  const int64_t* strides;
  uint32_t rank;
  uint8_t dtype;
} LtcDims;

typedef struct LtcOperand {  // one tensor (or generator) argument, in order of appearance
  const LtcSlot* slot;
  LtcDims dims;
  uint8_t flags;  // LTC_MUT | LTC_FRESH
  uint8_t generator;
  int64_t offset;  // storage offset in elements
} LtcOperand;

typedef struct LtcRecord {
  const void* op;  // from define_op
  const uint64_t* words;
  const uint64_t* numbers;
  const LtcOperand* operands;
  const void* signature;  // from signature_new; null while inferring
  uint32_t nwords, nnumbers, noperands;
  uint32_t nfresh;  // how many results are new tensors
  int32_t device;
} LtcRecord;

// Memory of a device in bytes, as LtcVTable.memory tells it.
typedef struct LtcMemory {
  uint64_t used, peak;               // in live buffers, and the highest value since the last reset
  uint64_t taken, freed;             // by buffers since the last reset
  uint64_t reserved, reserved_peak;  // in use or kept for the next run
  uint64_t available, total;         // of the whole device; both 0 where nobody knows
} LtcMemory;

typedef struct LtcCall LtcCall;      // an eager call in progress (C++)
typedef struct LtcHold LtcHold;      // keeps a storage or generator alive (C++)
typedef struct LtcChecks LtcChecks;  // what a capture takes for granted of tensors (C++)

// ---- implemented in Rust ----
typedef struct LtcVTable {
  const void* ctx;
  // Interns an operator; the handle lives for ever. `props`: what the schema says; out: what the table adds.
  const void* (*define_op)(const void* ctx, const char* name, size_t len, uint32_t* props);
  const void* (*layout_new)(const LtcDims* dims);
  void (*layout_drop)(const void* layout);
  // What equal calls share: operator, structural arguments and result layouts (written arguments, new tensors,
  // generator).
  const void* (*signature_new)(const void* op, const uint64_t* words, uint32_t nwords, const LtcDims* results,
                               uint32_t nresults);
  void (*signature_drop)(const void* signature);
  // Records a call. `out` receives `nfresh` storages; written arguments are updated in place.
  int (*record)(const void* ctx, const LtcRecord* call, LtcSlot* out, LtcError* err);
  // A table rule's result layouts for a call. 0: `results` set through ltc_infer_push; 1: error; 2: no rule.
  int (*infer)(const void* ctx, const void* op, const LtcRecord* call, const LtcDims* operands, void* results,
               LtcError* err);
  void (*storage_uninit)(const void* ctx, const void* layout, int32_t device, LtcSlot* out);
  void (*storage_bytes)(const void* ctx, size_t nbytes, int32_t device, LtcSlot* out);
  void (*storage_drop)(const void* ctx, LtcSlot* slot);
  void (*storage_share)(const void* ctx, const LtcSlot* dst, const LtcSlot* src, const LtcOperand* src_view,
                        int32_t device);
  void (*storage_resize)(const void* ctx, const LtcSlot* slot, size_t nbytes, int32_t device);
  void (*storage_keep_failures)(const LtcSlot* slot);  // writes to it that fail are not undone
  // t := src where both have t's dtype and sizes; src's strides equal t's. Records at most views.
  int (*assign)(const void* ctx, const LtcOperand* dst, const LtcOperand* src, int32_t device, LtcError* err);
  // Takes a host tensor (owned at::Tensor*, dense, offset 0) as a new storage.
  int (*import)(const void* ctx, int32_t device, void* tensor, const LtcDims* dims, LtcSlot* out, LtcError* err);
  // dst := host tensor (owned at::Tensor*) of exactly dst's dtype, sizes and strides.
  int (*import_into)(const void* ctx, int32_t device, const LtcOperand* dst, void* tensor, LtcError* err);
  // Current values as host tensors (owned at::Tensor* each): a sync point and a wait for just these.
  int (*to_host)(const void* ctx, int32_t device, const LtcOperand* views, uint32_t n, void** tensors, LtcError* err);
  int (*fallback)(const void* ctx, LtcCall* call, const char* op, size_t len, int32_t reason, int32_t device,
                  LtcError* err);
  int (*forced_fallback)(const void* ctx, const char* op, size_t len);
  // Generators: a storage that holds a state.
  int (*seed)(const void* ctx, const LtcSlot* generator, uint64_t seed, int32_t device, LtcError* err);
  int (*generator_state)(const void* ctx, const LtcSlot* generator, int32_t device, void** generator_out,
                         LtcError* err);
  int (*set_generator_state)(const void* ctx, const LtcSlot* generator, int32_t device, void* generator_in,
                             LtcError* err);
  int (*synchronize)(const void* ctx, int32_t device, LtcError* err);
  // Other processes wait for something that is recorded.
  void (*others_wait)(const void* ctx, int32_t device);
  // Sends what is recorded; *idle: all of it has run.
  int (*is_idle)(const void* ctx, int32_t device, int* idle, LtcError* err);
  // An event behind all that is recorded. `timed`: sends it, so that the event's time is that of nothing later.
  int (*event_new)(const void* ctx, int32_t device, int timed, void** event, LtcError* err);
  void (*event_drop)(void* event);
  int (*event_is_reached)(const void* event, int* reached, LtcError* err);
  int (*event_wait)(const void* event, LtcError* err);
  // From one event to another, in seconds; an error while one of them is not reached.
  int (*event_elapsed)(const void* from, const void* to, double* seconds, LtcError* err);
  // Memory of programs.
  int (*memory)(const void* ctx, int32_t device, LtcMemory* out, LtcError* err);
  int (*memory_reset_peaks)(const void* ctx, int32_t device, LtcError* err);
  int (*memory_reset_sums)(const void* ctx, int32_t device, LtcError* err);
  int (*memory_release)(const void* ctx, LtcError* err);  // what is kept for the next run goes back to the system
  // First use of a storage or generator since ltc_capture_begin on this thread, before the use.
  void (*touched)(const void* ctx, const LtcSlot* slot);
  int32_t device_count;
  const int32_t* places;  // of each device: where its values are (ltc_place_check)
  int32_t expect_calls;   // compare a call with what came next the last time before looking it up
  int32_t small_probes;   // run elementwise kernels on one element where that tells as much as all of them
} LtcVTable;

// ---- implemented in C++ ----
// Registers the device and its kernels; once per process. Fails when the running libtorch is not the one compiled for.
int ltc_init(const LtcVTable* vtable, const char* device_name, LtcError* err);
// Whether this libtorch has MPS devices.
int ltc_has_mps(void);
// Makes MPS, which this libtorch must not have, another name of the registered device; once per process.
int ltc_name_mps(LtcError* err);
void ltc_infer_push(void* results, const LtcDims* dims /* null: undefined */);

// Tensors: every void* is an at::Tensor*.
void* ltc_tensor_clone(const void* tensor);  // owned
void ltc_tensor_free(void* tensor);
void* ltc_tensor_data(const void* tensor);  // of its first element; null where it has no memory
int ltc_tensor_copy(const void* to, const void* from, LtcError* err);
int ltc_tensor_zero(const void* tensor, LtcError* err);
int ltc_tensor_contiguous_copy(const void* tensor, void** out, LtcError* err);  // without history
int ltc_tensor_detach(const void* tensor, void** out, LtcError* err);
int ltc_tensor_to_device(const void* tensor, int32_t device /* -1: CPU */, void** out, LtcError* err);
// The at::TensorImpl* inside, which is all an at::Tensor is: a pointer to one can be read as an at::Tensor*.
void* ltc_tensor_impl(const void* tensor);
int ltc_tensor_lazy_device(const void* tensor);  // device index, -1 when it is not on the lazy device
int ltc_tensor_empty(const LtcDims* dims, int32_t device, void** out, LtcError* err);
// The storage and view behind a lazy tensor; fails when it is not one.
int ltc_tensor_operand(const void* tensor, LtcOperand* out, LtcError* err);
// A new tensor over a new storage of `nbytes` that takes `slot` over (also when it fails).
int ltc_tensor_wrap(LtcSlot* slot, size_t nbytes, const LtcDims* view, int64_t offset, int32_t device, void** out,
                    LtcError* err);

// What a tensor is besides its values. Addresses tell what is the same, and are not to be followed.
// GATHERS_BY_PYTHON: functions of Python are called where the gradient of a leaf is added up. DUAL: it has a tangent.
enum LtcTensorFlags { LTC_REQUIRES_GRAD = 1, LTC_INFERENCE = 2, LTC_GATHERS_BY_PYTHON = 4, LTC_DUAL = 8 };
typedef struct LtcTensorState {
  const void* storage;  // null where there is none
  const void* grad;     // null where there is none
  const void* history;  // the node that made it; null for leaves
  uint64_t keys;        // dispatch keys: conjugation, negation, subclasses among them
  uint64_t layout;      // a hash of dtype, sizes, strides, offset and the storage's size
  uint64_t hooks;       // a hash of what is called when its gradient comes
  uint32_t version;
  uint32_t flags;
} LtcTensorState;
void ltc_tensor_state(const void* tensor, LtcTensorState* out);
void ltc_tensor_bump(const void* tensor, uint32_t by);  // its version, as so many writes do
// Inference mode of this thread from here on, until the end; null where it is so already.
int ltc_inference_mode(bool on, void** out, LtcError* err);
void ltc_inference_mode_end(void* mode);
void* ltc_tensor_grad(const void* tensor);  // owned; null where there is none
int ltc_tensor_set_grad(const void* tensor, const void* grad /* null: none */, LtcError* err);
// Makes a tensor one with a history of this name that cannot be gone back through, and says why when it is tried.
// Gradients of a tensor without history go to another one's as they are, by a node of its own.
int ltc_tensor_pass_to(const void* tensor, const void* to, LtcError* err);
int ltc_tensor_set_freed_history(const void* tensor, const char* name, size_t n, const char* why, size_t m,
                                 LtcError* err);
bool ltc_tensor_history_is_freed(const void* tensor);  // whether it has such a history

// The history that autograd makes of these tensors from `begin` on. `take` says whether all that leads back from these
// results was made since, and which of the tensors it leads to (one byte each); `detach` severs it from what was
// before, which `mend` takes back and `let_go` makes final; detached, `run` goes back through it as often as wanted:
// from gradients of the results (null: none) to owned gradients of the tensors (null: none).
typedef struct LtcHistory LtcHistory;
LtcHistory* ltc_history_begin(const void* const* tensors, size_t n, LtcError* err);
int ltc_history_take(LtcHistory* h, const void* const* results, size_t m, uint8_t* reached, LtcError* err);
void ltc_history_detach(LtcHistory* h);
void ltc_history_mend(LtcHistory* h);
void ltc_history_let_go(LtcHistory* h);
int ltc_history_run(const LtcHistory* h, const void* const* grads, void** out, LtcError* err);
void ltc_history_free(LtcHistory* h);

// A tensor that shows `view` of the storage behind another one.
int ltc_tensor_alias(const void* base, const LtcDims* view, int64_t offset, void** out, LtcError* err);

// Captures: which storages and generators this thread uses, in order of first use.
void ltc_capture_begin(bool with_checks);
// What this thread uses is not noted from here on, or is again.
void ltc_capture_pause(int pauses);
// A null among the holds stands for a storage that is gone.
uint32_t ltc_capture_end(LtcHold** holds /* null: only count and forget */, uint32_t room);
uint32_t ltc_capture_count(void);
// What this thread's capture takes for granted of tensors that somebody else keeps: whether leaves require gradients,
// which storages they have, and the values of 0-dim tensors of the host. Asked for before the end of the capture.
int ltc_capture_checks(LtcChecks** out, LtcError* err);
int ltc_checks_hold(const LtcChecks* checks, int* holds, LtcError* err);
void ltc_checks_free(LtcChecks* checks);
const LtcSlot* ltc_hold_slot(const LtcHold* hold);
int ltc_hold_is_shared(const LtcHold* hold);  // somebody else holds it too
// A tensor that shows `view` of it; fails for generators.
int ltc_hold_tensor(const LtcHold* hold, const LtcDims* view, int64_t offset, void** out, LtcError* err);
void ltc_hold_free(LtcHold* hold);

// Threads that kernels called from this thread may use (at least 1), and oneMKL's products alone (0: as many as
// kernels). What is negative is left as it is, on the way in; on the way out, was not changed.
typedef struct LtcThreads {
  int kernels, products;
} LtcThreads;
int ltc_nan_bound_holds();  // whether `clamp` by NaN alone gives NaN
int ltc_num_threads();
void ltc_set_num_threads(int threads /* more than none */);
LtcThreads ltc_threads(LtcThreads wanted);  // returns what it was

// ---- ambient state (ambient.cpp) of the calling thread and the process; words that are to be compared ----
typedef struct LtcAmbient {
  uint64_t keys_included, keys_excluded;  // dispatch keys
  uint64_t autograd, anomaly, autocast;
  // How many Python modes and hooks of saved tensors there are, and whether there are functorch's transforms.
  uint64_t modes;
  uint64_t mode_objects;  // and which
  uint64_t default_dtype, determinism, numerics, threads;
  uint64_t registrations;  // how often operators got other kernels, as far as it was noted
  uint64_t device;         // the current one of the lazy devices
} LtcAmbient;
void ltc_ambient(LtcAmbient* out);
// Operators got other kernels: nothing that was captured before goes by them.
void ltc_note_registration(void);
// A fingerprint of the state of the CPU's default generator.
int ltc_host_draws(uint64_t* out, LtcError* err);
// What kernels of programs warned of since it was last asked.
void ltc_take_warnings(void* ctx, void (*each)(void* ctx, const char* text, size_t len));

// ---- places (place.cpp): where the values of a device are; -1 is the CPU, n is cuda:n ----
// Whether it can be used; loads what that takes. To be called for each place before anything else is done there.
int ltc_place_check(int32_t place, LtcError* err);
// Folder of the loaded libtorch; null where nobody says.
const char* ltc_library_folder(void);
// From here on work that the calling thread asks the place for goes to our stream there, until it leaves.
typedef struct LtcEntered LtcEntered;
int ltc_place_enter(int32_t place, LtcEntered** out, LtcError* err);
void ltc_place_leave(LtcEntered* entered);
void* ltc_place_stream(int32_t place);                // CUDA's handle of that stream
int ltc_error_is_fatal(int32_t code);                 // whether a GPU does nothing any more after this error of CUDA's
int ltc_place_wait(int32_t place, LtcError* err);     // until all that was put there is done
int ltc_place_release(int32_t place, LtcError* err);  // memory kept for reuse goes back to the system
// From here on what the calling thread asks the place for goes to a stream that nobody else uses, with memory that is
// kept for graphs, until it leaves. An error where libtorch was built without CUDA.
typedef struct LtcTakingDown LtcTakingDown;
int ltc_graph_enter(int32_t place, LtcTakingDown** out, LtcError* err);
void ltc_graph_leave(LtcTakingDown* entered);
// A tensor over memory of the place that somebody else holds.
int ltc_tensor_over(void* memory, const LtcDims* dims, int32_t place, void** out, LtcError* err);
// Copies elements of tensors to others of the same layouts, all of them there.
int ltc_tensors_copy(int32_t place, const void* const* to, const void* const* from, size_t n, LtcError* err);
// A point behind all that was put at a place that is not the CPU.
typedef struct LtcFence LtcFence;
int ltc_fence_new(int32_t place, LtcFence** out, LtcError* err);
void ltc_fence_free(LtcFence* fence);
int ltc_fence_passed(const LtcFence* fence, int* passed, LtcError* err);
int ltc_fence_wait(const LtcFence* fence, LtcError* err);
int ltc_fence_seconds(const LtcFence* from, const LtcFence* to, double* seconds, LtcError* err);  // both passed
typedef struct {
  uint64_t cached;            // bytes kept for reuse
  uint64_t available, total;  // bytes of the whole device
} LtcPlaceMemory;             // all 0 on the CPU
int ltc_place_memory(int32_t place, LtcPlaceMemory* out, LtcError* err);
// A dispatch key that is included while something is put at a place that is not the CPU, from now on. For tests.
int ltc_place_key(const char* name, LtcError* err);
int ltc_tensor_place(const void* tensor);  // -2: on neither
// The same values and layout at a place: the tensor itself if it is there. Waits only on the way to the host.
int ltc_tensor_at_place(const void* tensor, int32_t place, void** out, LtcError* err);
int ltc_tensor_new_at(const LtcDims* dims, int32_t place, void** out, LtcError* err);
// What `part` shows of a tensor's memory, from its element `offset` on; shares it. Must lie within.
int ltc_tensor_part(const void* base, const LtcDims* part, int64_t offset, void** out, LtcError* err);
// Layout of a tensor (valid while it is); 0 if it has no memory of a place.
int ltc_tensor_dims(const void* tensor, LtcDims* out);

// Host tensors: data pointer of a CPU tensor, and its dims (valid while the tensor is).
const void* ltc_host_dims(const void* tensor, LtcDims* out);
// Dense, strided, on the CPU, and its memory holds its elements as they are; no subclass with an operator of its own.
int ltc_host_holds(const void* tensor);  // whether it has memory on the CPU
int ltc_host_is_plain(const void* tensor);
int ltc_host_is_sole_holder(const void* tensor);

// Call plans: one graph node made ready for execution on tensors of a place, below autograd.
typedef struct LtcPlan LtcPlan;
int ltc_plan_new(const char* op, size_t len, const uint64_t* words, uint32_t nwords, const LtcDims* results,
                 uint32_t nresults, int32_t place, LtcPlan** out, LtcError* err);
void ltc_plan_free(LtcPlan* plan);
// operands: at::Tensor* (at::Generator* for generator arguments) in order of appearance; reusable[i]: this operand may
// be written in place if it is the sole holder of its memory. outs: owned at::Tensor* / at::Generator*.
int ltc_plan_run(const LtcPlan* plan, void* const* operands, const uint8_t* reusable, const uint64_t* numbers,
                 void** outs, LtcError* err);
// Runs an operator once, with no promise about its results' layouts: written arguments (copied first) and defined
// results.
int ltc_probe(const char* op, size_t len, const uint64_t* words, uint32_t nwords, void* const* operands,
              const uint8_t* reusable, const uint64_t* numbers, void** outs, uint32_t room, uint32_t* count,
              LtcError* err);

// Calls body(ctx, begin, end) for ranges that cover 0..n, on libtorch's threads, each of about `grain` or more.
int ltc_parallel_for(int64_t n, int64_t grain, void* ctx, void (*body)(void*, int64_t, int64_t), LtcError* err);

// Generators: at::Generator* at a place.
int ltc_generator_new(uint64_t seed, int32_t place, void** out, LtcError* err);
int ltc_generator_clone(const void* generator, void** out, LtcError* err);
// Of libtorch's default generator on the CPU: a copy of its state (owned), and taking over the state of another one.
int ltc_cpu_generator_get(void** out, LtcError* err);
int ltc_cpu_generator_set(const void* generator, LtcError* err);
void ltc_generator_free(void* generator);
typedef struct {
  uint64_t seed;
  int32_t left;
  uint32_t seeded, next;
  uint32_t state[624];
} LtcEngine;  // what at::mt19937 holds
int ltc_generator_engine(const void* generator, LtcEngine* out, LtcError* err);
int ltc_generator_set_engine(void* generator, const LtcEngine* engine, LtcError* err);
int ltc_default_generator_seed(int32_t device, uint64_t seed, LtcError* err);
int ltc_default_generator_get(int32_t device, void** state /* owned CPU at::Tensor* */, uint64_t* seed, LtcError* err);
// Where the default generator of a lazy device holds its state; lives as long as the process.
int ltc_default_generator_slot(int32_t device, const LtcSlot** out, LtcError* err);
int ltc_default_generator_set(int32_t device, const void* state, LtcError* err);

// Eager calls (LtcVTable.fallback).
uint32_t ltc_call_operand_count(const LtcCall* call);
void ltc_call_operand(const LtcCall* call, uint32_t i, LtcOperand* out, int32_t* device);
// Tensors at the device's place (borrowed), one per operand.
int ltc_call_run(LtcCall* call, void* const* values, LtcError* err);
int ltc_call_finish(LtcCall* call, LtcError* err);  // results and written arguments back to the device

// Memory of programs (pool.cpp).
typedef struct {
  size_t cached, live;     // bytes kept, bytes handed out
  uint64_t reused, fresh;  // blocks handed out so far: kept ones, new ones
  uint64_t settled;        // blocks whose pages shall be huge by now
} LtcPoolStats;
// ---- calls (infer.cpp): how the calling thread's calls found their result layouts ----
typedef struct LtcCalls {
  uint64_t expected, looked_up, inferred, probed;
} LtcCalls;
void ltc_calls(LtcCalls* out);

int ltc_pool_limit(size_t bytes,
                   LtcError* err);  // keeps at most this much; the first call that is not 0 installs the pool
void ltc_pool_enter(void);          // from here on this thread runs a program
// Blocks handed out since ltc_pool_enter, and bytes kept now.
void ltc_pool_leave(uint64_t* reused, uint64_t* fresh, size_t* cached);
void ltc_pool_empty(void);
void ltc_pool_stats(LtcPoolStats* out);

// Forks: of every fork that runs the system's handlers, on the thread that forks; the locks of this side are taken
// besides. Once per process.
int ltc_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void), LtcError* err);
int ltc_came_along(void);  // whether this thread came along into a forked child

// ---- groups of processes (process_group_gloo.cpp; with the feature `dist` only) ----
typedef struct LtcStore LtcStore;  // where processes find each other
typedef struct LtcGroup LtcGroup;  // a c10d::ProcessGroup, registered under a name of its own
// A store at `host:port` (0: the system chooses one), which this process serves or another one does; waits for `world`
// processes.
int ltc_store_tcp(const char* host, uint16_t port, int serves, int32_t world, int64_t timeout_ms, LtcStore** out,
                  LtcError* err);
int ltc_store_part(const LtcStore* whole, const char* prefix, LtcStore** out, LtcError* err);  // keys with a prefix
uint16_t ltc_store_port(const LtcStore* store);
void ltc_store_free(LtcStore* store);
// A group with an engine for CPU tensors and one for ltc tensors; waits for the other ranks.
int ltc_group_gloo(const LtcStore* at, int32_t rank, int32_t world, int64_t timeout_ms, LtcGroup** out, LtcError* err);
void ltc_group_free(LtcGroup* group);
int ltc_group_wait(LtcError* err);  // sends all that is recorded, and waits for it
// Collectives of dense tensors (at::Tensor*) on the CPU or on the lazy device, where they are recorded. `op` is c10d's
// number; results are owned.
int ltc_group_all_reduce(const LtcGroup* group, const void* tensor, int32_t op, LtcError* err);
int ltc_group_broadcast(const LtcGroup* group, const void* tensor, int32_t root, LtcError* err);
int ltc_group_all_gather(const LtcGroup* group, const void* tensor, void** out, LtcError* err);
int ltc_group_reduce_scatter(const LtcGroup* group, const void* tensor, int32_t op, void** out, LtcError* err);
int ltc_group_barrier(const LtcGroup* group, LtcError* err);

// Dispatcher.
void ltc_forced_changed(void);  // asks forced_fallback again for every operator
int ltc_op_schema(const char* name, const char* overload, char** text);  // malloc'ed text; 1 when there is no such op
int ltc_for_each_op(void (*each)(void* ctx, const char* name, size_t len, const char* schema, size_t schema_len),
                    void* ctx);
void ltc_free(void* p);

#ifdef __cplusplus
}
#endif
