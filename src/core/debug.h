// What FACULA_DEBUG prints: calls, layers, kernels and memory, each line with its place in the
// source.
#pragma once
#include <atomic>
#include <source_location>
#include <string_view>

namespace facula::debug {

// What each level adds to the ones before.
enum class Level : int { Off = 0, Calls = 1, Layers = 2, Kernels = 3, Memory = 4 };

// Negative until read_level() has read it from the environment.
extern constinit std::atomic<int> level_in_force;

int read_level();

// Whether lines of a level are printed. With debugging off it costs one load and one comparison.
inline bool prints(Level wanted) {
  int level = level_in_force.load(std::memory_order_relaxed);
  if (level == 0) [[likely]]
    return false;
  if (level < 0) level = read_level();
  return level >= static_cast<int>(wanted);
}

void set_level(Level level);

// Writes one line to stderr, indented by the depth of nested operator calls on this thread.
void print(Level level, std::string_view text,
           std::source_location where = std::source_location::current());

// Prints which implementation a kernel chose.
inline void print_route(std::string_view text,
                        std::source_location where = std::source_location::current()) {
  if (prints(Level::Kernels)) [[unlikely]]
    print(Level::Kernels, text, where);
}

// Indents the lines printed while it lives.
class Deeper {
 public:
  Deeper();
  ~Deeper();
  Deeper(const Deeper&) = delete;
};

}  // namespace facula::debug
