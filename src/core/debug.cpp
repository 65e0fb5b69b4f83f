#include "core/debug.h"

#include <cstdio>
#include <cstdlib>

#include "core/environment.h"

namespace facula::debug {
namespace {

thread_local int depth = 0;

// Cuts a compiler's path down to the part within the repository: "src/dispatch/call.cpp".
std::string_view in_the_tree(std::string_view path) {
  for (const std::string_view folder : {"src/", "python/"}) {
    const size_t at = path.rfind(folder);
    if (at != std::string_view::npos && (at == 0 || path[at - 1] == '/')) return path.substr(at);
  }
  return path;
}

}  // namespace

constinit std::atomic<int> level_in_force{-1};

int read_level() {
  const char* asked = environment_value("FACULA_DEBUG");
  int level = 0;
  if (asked != nullptr) {
    char* end = nullptr;
    const long number = std::strtol(asked, &end, 10);
    if (*end != '\0' || number < 0 || number > static_cast<int>(Level::Memory))
      std::fprintf(stderr, "facula: FACULA_DEBUG: expected a number from 0 to 4; got %s\n", asked);
    else
      level = static_cast<int>(number);
  }
  level_in_force.store(level, std::memory_order_relaxed);
  return level;
}

void set_level(Level level) {
  level_in_force.store(static_cast<int>(level), std::memory_order_relaxed);
}

void print(Level level, std::string_view text, std::source_location where) {
  const std::string_view file = in_the_tree(where.file_name());
  // One call for the whole line, so that lines of several threads do not mix.
  std::fprintf(stderr, "facula %d: %*s%.*s  [%.*s:%u]\n", static_cast<int>(level), 2 * depth, "",
               static_cast<int>(text.size()), text.data(), static_cast<int>(file.size()),
               file.data(), static_cast<unsigned>(where.line()));
}

Deeper::Deeper() { ++depth; }
Deeper::~Deeper() { --depth; }

}  // namespace facula::debug
