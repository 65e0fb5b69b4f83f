// Engines by name. "local" is a part of the library; any other is a shared library
// libfacula_engine_NAME.so beside it, opened when it is first asked for.
#pragma once
#include "distributed/engine.h"

namespace facula::distributed {

// What such a library exports, as extern "C" facula_new_engine.
using NewEngine = Engine* (*)(const EngineOptions&);

std::unique_ptr<Engine> new_engine(const std::string& name, const EngineOptions& options);
// The rank and the number of processes of an engine whose own program has started them, as mpirun.
struct World {
  int rank = 0, size = 1;
};
World world_of(const std::string& name);
// Why an engine cannot be used; empty if it can.
std::string why_not(const std::string& name);

}  // namespace facula::distributed
