// Warnings that one process gives once.
#pragma once
#include <atomic>
#include <string>

#include "dispatch/warnings.h"

namespace facula {

// Warns unless `told` is set, and sets it.
inline void warn_once(std::atomic<bool>& told, const std::string& text) {
  if (!told.exchange(true, std::memory_order_relaxed)) warn(text);
}

}  // namespace facula
