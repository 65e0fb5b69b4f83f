// The switches that a user sets in the environment, in one table.
#pragma once
#include <span>
#include <string_view>

namespace facula {

struct Switch {
  std::string_view name;
  std::string_view also;    // another program's name for the same, heeded where ours is not set
  std::string_view values;  // what may be given
  std::string_view meaning;
};

// All switches, those that only the Python package reads included.
std::span<const Switch> environment_switches();

// What a switch of the table is set to; null where it is not set, or to nothing. RuntimeError for a
// name that the table lacks.
const char* environment_value(std::string_view name);

}  // namespace facula
