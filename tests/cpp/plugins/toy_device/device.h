// The parts of the toy device that know each other.
#pragma once
#include "core/device_table.h"
#include "core/error.h"

namespace toy {

// Puts the toy's kernels into facula's operators, through facula's C interface (kernels.cpp).
void register_kernels(int32_t type);
// The CPU's kernels for all other operators (fallback.cpp).
void register_fallback(facula::DeviceType type);

// Elements one by one, of one dtype or between float and double; others are left to facula.
int copy_strided(int index, const facula_strided_copy* copy, void* stream);

}  // namespace toy
