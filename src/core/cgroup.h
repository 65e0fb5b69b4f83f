// What the process may use: processors and memory, by affinity and control group.
#pragma once
#include <cstddef>

namespace facula {

// Processors that this process may keep busy: those of its affinity mask, or fewer when its control
// group has a quota; at least 1. Reads a few files: ask once and keep the answer.
int usable_cpus();

// Bytes of memory that this process may use: physical memory, or less when its control group has a
// limit. Reads a few files: ask once and keep the answer.
size_t usable_memory();

}  // namespace facula
