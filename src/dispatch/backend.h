// The last step of a call: results made from the shape rule, the kernel, versions and views.
#pragma once
#include "dispatch/meta.h"
#include "dispatch/mutations.h"

namespace facula {

void run_backend(OpCall& c, Layer backend);

// The same with a given kernel, which makes its results: what tensors of a registered kind run.
void run_kernel(OpCall& c, const Slot& kernel);

// RuntimeError where the call's tensors are on several devices, by index; numbers of the CPU may
// come along, and operators that are made for it take any.
void check_devices(const OpCall& c);

// For kernels registered from outside (plug-in devices): allocates the results of the call from
// the record's shape rule, as the call path does for built-in kernels.
void allocate_results(OpCall& c);

// The instruction set in force, in PyTorch's words: "DEFAULT", "AVX2" or "AVX512". The
// environment's FACULA_CPU_CAPABILITY (or ATEN_CPU_CAPABILITY) asks for another than the machine's
// best.
const char* isa_name();

// The device that results of this call live on.
Device result_device(const OpCall& c);

}  // namespace facula
