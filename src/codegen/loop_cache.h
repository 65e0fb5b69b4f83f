// Compiled loops of this process: what is ready is found at once; what is not is compiled on a
// thread of its own while the caller goes on by row functions (graph/rows.h).
#pragma once
#include <cstdint>
#include <string>

#include "graph/fused_loop.h"

namespace facula::loop_cache {

// Lets row groups ask here. Called once; does nothing where FACULA_COMPILER=0.
void install();

// Whether there is a library beside ours or one is asked for; else another may be given before the
// first loop.
bool has_library();
void set_library(const char* path);

// Waits until nothing is left to compile.
void wait();

// For the end of the process: waits for the loop at work and compiles none after it. Must come
// before exit handlers run: the library may be opening yet, and its static objects go with them.
void stop();

struct Counts {
  uint64_t compiled = 0, loaded = 0, failed = 0, used = 0;
  bool available = false;
};
Counts counts();

// Why the last loop was not compiled; empty if none failed.
std::string last_error();

// From how many sightings on a loop is compiled (2): what is seen once may not come back.
void set_sightings(uint32_t n);

}  // namespace facula::loop_cache
