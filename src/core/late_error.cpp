#include "core/late_error.h"

#include <atomic>
#include <map>
#include <mutex>

#include "core/error.h"

namespace facula {
namespace {

std::atomic<int> noted{0};  // of all devices, so that waiting costs nothing while there are none
std::mutex mutex;

std::map<std::pair<DeviceType, int>, std::string>& texts() {
  static auto* all = new std::map<std::pair<DeviceType, int>, std::string>;
  return *all;
}

std::string take(Device d) {
  if (noted.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(mutex);
  auto taken = texts().extract({d.type, d.index});
  if (taken.empty()) return {};
  --noted;
  return std::move(taken.mapped());
}

}  // namespace

void note_late_error(Device d, std::string text) {
  const std::lock_guard lock(mutex);
  if (texts().try_emplace({d.type, d.index}, std::move(text)).second) ++noted;
}

void forget_late_error(Device d) { take(d); }

void raise_late_error(Device d) {
  const std::string text = take(d);
  if (!text.empty()) throw Error(ErrorKind::Accelerator, str(d), ": ", text);
}

}  // namespace facula
