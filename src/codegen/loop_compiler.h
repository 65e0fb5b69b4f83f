// What the library of the compiler (libfacula_compiler.so, codegen/llvm) offers to the cache of
// loops: it is opened at the first loop and may be absent.
#pragma once
#include <string>

#include "graph/fused_loop.h"

namespace facula {

struct LoopCompiler {
  // Both sides must have been built of the same headers.
  static constexpr uint32_t expected = 1 + static_cast<uint32_t>(sizeof(FusedLoop::Step)) * 256;
  uint32_t version = 0;
  // LLVM's version, and what tells the scalar functions apart that loops have copies of: objects of
  // another name are not used.
  const char* name = nullptr;
  // Machine code of a loop as an object file that defines `symbol`, for an instruction set by the
  // name of its kernels' namespace. Empty, with the reason, where it cannot or does not pay.
  std::string (*compile)(const FusedLoop& loop, const char* isa, const std::string& symbol,
                         std::string& error) = nullptr;
  // Makes an object's code executable, for the life of the process. Null with the reason.
  CompiledLoop (*load)(const std::string& object, const std::string& symbol,
                       std::string& error) = nullptr;
};

// The library exports `const LoopCompiler* facula_loop_compiler()`.
using GetLoopCompiler = const LoopCompiler* (*)();

}  // namespace facula
