#include "dispatch/warnings.h"

namespace facula {

constinit std::atomic<WarningHandler> warning_handler{nullptr};

void warn(const std::string& text) {
  if (const WarningHandler h = warning_handler.load()) h(text);
}

}  // namespace facula
