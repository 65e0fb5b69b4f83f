// The parts of the toy device that know each other.
#pragma once
#include "core/device_table.h"
#include "core/error.h"

namespace toy {

// Puts the toy's kernels, and the CPU's for all other operators, into facula's table.
void register_kernels(facula::DeviceType type);

// Elements one by one, of one dtype or between float and double; others are left to facula.
int copy_strided(int index, const facula_strided_copy* copy, void* stream);

}  // namespace toy
