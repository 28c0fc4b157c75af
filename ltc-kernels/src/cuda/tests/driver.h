// The driver's functions, for twins: what a launch puts on a stream is run at once.

struct Entry {
  const char* name;
  void (*run)(void**);
};
extern const Entry entries[];
extern const unsigned entry_count;

static unsigned order;

extern "C" {

void twin_set_order(unsigned seed) { order = seed; }

int cuInit(unsigned) { return 0; }

int cuGetErrorName(int code, const char** name) {
  *name = code == 719 ? twin::failure : "CUDA_ERROR_NOT_FOUND";
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

// A device of compute capability 8.0.
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 8 : 0;
  return 0;
}

int cuModuleLoadData(void** module, const void*) {
  *module = (void*)entries;
  return 0;
}

int cuModuleGetFunction(void** function, void*, const char* name) {
  for (unsigned i = 0; i < entry_count; i++) {
    if (!strcmp(entries[i].name, name)) {
      *function = (void*)&entries[i];
      return 0;
    }
  }
  return 500;
}

int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned,
                   void*, void** args, void**) {
  const Entry& entry = *(const Entry*)function;
  return twin::launch(grid, block, order, [&] { entry.run(args); }) ? 719 : 0;
}

}  // extern "C"
