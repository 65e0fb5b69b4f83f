// Warnings to the user, which the binding makes Python's.
#pragma once
#include <atomic>
#include <string>

namespace facula {

// What takes warnings; null where nobody listens. It may throw: Python can make errors of them.
using WarningHandler = void (*)(const std::string& text);
extern std::atomic<WarningHandler> warning_handler;

void warn(const std::string& text);

}  // namespace facula
