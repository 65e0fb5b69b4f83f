#include "core/cgroup.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#include <unistd.h>

namespace facula {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// The first bytes of a small file; empty when it cannot be read.
std::string read_small_file(const std::string& path) {
  std::FILE* f = std::fopen(path.c_str(), "re");
  if (f == nullptr) return {};
  char buffer[4096];
  const size_t n = std::fread(buffer, 1, sizeof buffer, f);
  std::fclose(f);
  return std::string(buffer, n);
}

double number_or_unlimited(const char* text) {
  char* end = nullptr;
  const double x = std::strtod(text, &end);
  return end == text || x < 0 ? unlimited : x;  // "max", or -1 in version 1
}

bool names_controller(const std::string& list, const char* controller) {
  const std::string padded = "," + list + ",";
  return padded.find("," + std::string(controller) + ",") != std::string::npos;
}

// The path of the process's group for a controller, from lines of the form `id:controllers:path`.
// The line of version 2 lists no controllers; "" selects it.
std::string group_path(const std::string& groups, const char* controller) {
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string line = groups.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool match =
        *controller == 0 ? controllers.empty() : names_controller(controllers, controller);
    if (match) return line.substr(second + 1);
  }
  return "/";
}

// The smallest limit of a group and its parents, since all of them apply.
template <class F>
double least_over_parents(const std::string& mount, std::string path, F limit_at) {
  double least = limit_at(mount);
  while (path.size() > 1) {
    least = std::min(least, limit_at(mount + path));
    path.resize(std::min(path.rfind('/'), path.size() - 1));
  }
  return least;
}

double cpu_quota_v2(const std::string& folder) {
  const std::string text = read_small_file(folder + "/cpu.max");  // "QUOTA PERIOD"
  const size_t space = text.find(' ');
  if (space == std::string::npos) return unlimited;
  const double period = number_or_unlimited(text.c_str() + space);
  return period > 0 ? number_or_unlimited(text.c_str()) / period : unlimited;
}

double cpu_quota_v1(const std::string& folder) {
  const double quota = number_or_unlimited(read_small_file(folder + "/cpu.cfs_quota_us").c_str());
  const double period = number_or_unlimited(read_small_file(folder + "/cpu.cfs_period_us").c_str());
  return quota < unlimited && period > 0 && period < unlimited ? quota / period : unlimited;
}

double memory_limit_v2(const std::string& folder) {
  return number_or_unlimited(read_small_file(folder + "/memory.max").c_str());
}

double memory_limit_v1(const std::string& folder) {
  return number_or_unlimited(read_small_file(folder + "/memory.limit_in_bytes").c_str());
}

double cpu_quota() {
  const std::string groups = read_small_file("/proc/self/cgroup");
  return std::min(
      least_over_parents("/sys/fs/cgroup", group_path(groups, ""), cpu_quota_v2),
      least_over_parents("/sys/fs/cgroup/cpu", group_path(groups, "cpu"), cpu_quota_v1));
}

double memory_limit() {
  const std::string groups = read_small_file("/proc/self/cgroup");
  return std::min(
      least_over_parents("/sys/fs/cgroup", group_path(groups, ""), memory_limit_v2),
      least_over_parents("/sys/fs/cgroup/memory", group_path(groups, "memory"), memory_limit_v1));
}

int affinity_cpus() {
#if defined(__linux__)
  constexpr int max_cpus = 1 << 14;
  cpu_set_t* set = CPU_ALLOC(max_cpus);
  if (set != nullptr) {
    const size_t size = CPU_ALLOC_SIZE(max_cpus);
    const int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (n > 0) return n;
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int usable_cpus() {
  const int cpus = affinity_cpus();
  const double quota = cpu_quota();
  return quota < cpus ? std::max(1, static_cast<int>(quota + 0.5)) : cpus;
}

size_t usable_memory() {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double physical = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return static_cast<size_t>(std::min(physical, memory_limit()));
}

}  // namespace facula
