// NVRTC without a GPU's code: a program's text is compiled for the host, by the host's C++ compiler, with what
// ltc-kernels' tests have for its twins (`host_cuda.h`). Its "machine code" is the path of a shared object, which the
// stand-in's driver loads and runs in the order of the stream (`driver.cpp`). It is a library of its own, with NVRTC's
// name.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>

namespace {
struct Program {
  std::string text, log, path;
};

// What runs a kernel as the driver wants it run.
constexpr const char* kEntries = R"(
template <class... A> constexpr unsigned count(void (*)(A...)) { return sizeof...(A); }
template <class... A> struct Pointers {
  bool of[sizeof...(A)];
};
template <class... A> constexpr Pointers<A...> pointers(void (*)(A...)) { return {{std::is_pointer_v<A>...}}; }
#define ENTRY(f)                                                                                        \
  extern "C" const unsigned f##_parameters = count(ltc::f);                                             \
  extern "C" const auto f##_pointers = pointers(ltc::f);                                                \
  extern "C" void f##_run(const unsigned* grid, const unsigned* block, unsigned, void** parameters) {   \
    if (const char* why = twin::launch(grid[0], block[0], 0, [&] { twin::call(ltc::f, parameters); }))  \
      fprintf(stderr, "%s: %s\n", #f, why), abort();                                                    \
  }
)";

// `DRY_CUDA_MISTAKE=barrier` (runtime.h).
std::string mistaken(std::string text) {
  const char* mistake = getenv("DRY_CUDA_MISTAKE");
  if (!mistake || strcmp(mistake, "barrier")) return text;
  return std::regex_replace(text, std::regex("__syncthreads\\(\\);"), "");
}

std::string with_entries(const std::string& text) {
  std::string all =
      "#include <cstdio>\n#include <cstdlib>\n#include <type_traits>\n#include \"host_cuda.h\"\n" + text + kEntries;
  static const std::regex kernel("__launch_bounds__\\([0-9]+\\)\\s+(\\w+)\\(");
  for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found)
    all += "ENTRY(" + (*found)[1].str() + ")\n";
  return all;
}

// What was compiled stays there, so that the next process finds it.
bool compile(Program& program) {
  namespace fs = std::filesystem;
  const std::string text = with_entries(mistaken(program.text));
  const fs::path folder = DRY_CUDA_MADE, name = std::to_string(std::hash<std::string>{}(text));
  program.path = (folder / name).string() + ".so";
  if (fs::exists(program.path)) return true;
  fs::create_directories(folder);
  const std::string part = program.path + "." + std::to_string(getpid()), source = part + ".cpp", log = part + ".log";
  std::ofstream(source) << text;
  const char* compiler = getenv("CXX");
  const std::string command = std::string(compiler ? compiler : "c++") +
      " -std=c++17 -O1 -w -shared -fPIC -ffp-contract=off -fno-strict-aliasing -fno-gnu-unique -Wl,-Bsymbolic " +
      DRY_CUDA_HOST_FLAGS + " -I " + DRY_CUDA_HOST_HEADER + " " + source + " -o " + part + " 2> " + log;
  // The compiler is no CUDA program.
  const bool done = system(("env -u LD_PRELOAD " + command).c_str()) == 0;
  if (done) fs::rename(part, program.path);
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  program.log = said.str();
  fs::remove(source);
  fs::remove(log);
  return done;
}

int give(const std::string& text, char* to) {
  memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}
int give_size(const std::string& text, size_t* to) {
  *to = text.size() + 1;
  return 0;
}
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  *major = 13, *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS"; }
int nvrtcCreateProgram(Program** out, const char* text, const char*, int, const char* const*, const char* const*) {
  *out = new Program{text, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
// `DRY_CUDA_COMPILE_SECONDS`: how much longer it takes; below zero, nothing compiles.
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  const char* seconds = getenv("DRY_CUDA_COMPILE_SECONDS");
  if (seconds && atoi(seconds) < 0) return 6;
  if (seconds) sleep(atoi(seconds));
  return compile(*program) ? 0 : 6;
}
int nvrtcGetProgramLogSize(Program* p, size_t* size) { return give_size(p->log, size); }
int nvrtcGetProgramLog(Program* p, char* log) { return give(p->log, log); }
int nvrtcGetCUBINSize(Program* p, size_t* size) { return give_size(p->path, size); }
int nvrtcGetCUBIN(Program* p, char* code) { return give(p->path, code); }
int nvrtcGetPTXSize(Program* p, size_t* size) { return give_size(p->path, size); }
int nvrtcGetPTX(Program* p, char* code) { return give(p->path, code); }
}
