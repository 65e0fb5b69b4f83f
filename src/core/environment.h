// The table of all environment variables that facula reads.
#pragma once
#include <span>
#include <string_view>

namespace facula {

struct Switch {
  std::string_view name;
  std::string_view also;    // another program's variable that is read where ours is not set
  std::string_view values;  // the values that it accepts
  std::string_view meaning;
};

// All switches, including those that only the Python package reads.
std::span<const Switch> environment_switches();

// The value of a switch; null if it is unset or empty. RuntimeError for a name that the table
// lacks.
const char* environment_value(std::string_view name);

}  // namespace facula
