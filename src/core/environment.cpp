#include "core/environment.h"

#include <cstdlib>

#include "core/error.h"

namespace facula {
namespace {

constexpr Switch switches[] = {
    {"FACULA_DEBUG", "", "0 to 4",
     "prints to stderr: 1 calls of operators, 2 the layers they pass, 3 kernels and the ways they "
     "take, 4 memory allocated and freed"},
    {"FACULA_FENCED_ALLOCATOR", "", "0, 1",
     "memory between pages that nobody may touch, filled with a pattern (test builds only)"},
    {"FACULA_CPU_CAPABILITY", "ATEN_CPU_CAPABILITY", "default, avx2, avx512",
     "the instruction set of kernels; the best of the processor unless one is asked for"},
    {"FACULA_CONV", "", "depthwise_planes, depthwise, winograd, im2col, channels, planes",
     "the route of convolutions that it can compute; by shape, dtype and memory unless set"},
    {"FACULA_AMX", "", "1, 0 or emulated",
     "products of bfloat16 and of bytes by tiles (AMX) where the processor has them; on unless it "
     "is 0; emulated for tests of the tiles' ways on processors without them"},
    {"FACULA_PAIRS", "", "1 or 0",
     "products of bfloat16 by the instruction for pairs where the processor has it (1), or by "
     "multiply-adds of floats with the same bits (0); by what is faster unless set"},
    {"FACULA_CACHES", "", "sizes such as 48K,1024K,32768K",
     "the three caches that blocks of kernels are to fit in; those of the processor unless set"},
    {"FACULA_LAPACK", "", "the path of a library",
     "LAPACK for factors and solutions; that of the package scipy-openblas32, else the system's, "
     "unless set"},
    {"FACULA_COMPILER", "", "1 or 0",
     "groups of compiled functions become machine code where libfacula_compiler.so is there; on "
     "unless it is 0"},
    {"FACULA_COMPILER_LIBRARY", "", "the path of a library",
     "the compiler of loops; libfacula_compiler.so beside the core library unless set"},
    {"FACULA_CACHE_DIR", "", "a folder",
     "where compiled loops are kept for other processes; ~/.cache/facula unless set"},
    {"XDG_CACHE_HOME", "", "a folder", "below which that is, where it is set"},
    {"HOME", "", "a folder", "the user's own"},
    {"FACULA_DISTRIBUTED_ENGINE", "", "local or gloo",
     "what moves data between ranks; shared memory on one machine and Gloo on several unless set"},
    {"FACULA_DISTRIBUTED_HEARTBEAT", "", "seconds",
     "how long a rank may give no sign of life before it counts as lost; 10 unless set"},
    {"FACULA_DISTRIBUTED_LAG", "", "seconds",
     "how long a rank waits before it names those that lag, on stderr; 2 unless set"},
    {"FACULA_DISTRIBUTED_RECORDS", "TORCH_FR_BUFFER_SIZE", "a number",
     "calls to process groups that the flight recorder keeps; 2048 unless set, none at 0"},
    {"GLOO_SOCKET_IFNAME", "", "the name of an interface",
     "where Gloo connects ranks; that of the machine's name unless set"},
    {"OMP_NUM_THREADS", "", "a number",
     "threads that one operator uses; as many as the process has processors unless set"},
    {"FACULA_AS_TORCH", "", "1 or 0",
     "`import torch` means facula, in this process and its children (python -m facula run sets "
     "it)"},
    {"TORCH_FORCE_WEIGHTS_ONLY_LOAD", "", "1 or 0",
     "load() reads weights alone, whatever it is told"},
};

// getenv with an unset or empty variable as null. The names are literals, so they end with a null.
const char* non_empty(std::string_view name) {
  if (name.empty()) return nullptr;
  const char* value = std::getenv(name.data());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

std::span<const Switch> environment_switches() { return switches; }

const char* environment_value(std::string_view name) {
  for (const Switch& s : switches) {
    if (s.name != name) continue;
    const char* value = non_empty(s.name);
    return value != nullptr ? value : non_empty(s.also);
  }
  throw_error(ErrorKind::Runtime,
              concat("environment_value(): expected a switch of the table; got ", name));
}

}  // namespace facula
