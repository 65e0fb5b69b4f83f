// The last step of a call: results made from the shape rule, the kernel, versions and views.
#pragma once
#include "dispatch/meta.h"

namespace facula {

void run_backend(OpCall& c, Layer backend);

// In `spare` of a result's slot: the caller holds on to its arguments until it has read the result,
// and no layer puts others in their places. A result that is an argument is lent then, not counted.
inline constexpr uint16_t lends_argument = 1;

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
