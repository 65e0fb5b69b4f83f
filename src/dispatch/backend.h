// The last step of a call: runs the shape rule, allocates results, runs the kernel, and records
// versions and views.
#pragma once
#include "dispatch/meta.h"
#include "dispatch/mutations.h"

namespace facula {

void run_backend(OpCall& c, Layer backend);

// --- calls in two parts: all but the kernel now, the kernel later

// Makes a result that has geometry and dtype, and memory when the kernel runs.
using MakeResult = Tensor (*)(IntSpan sizes, const IntSpan* strides, DType dtype);
// Does what run_backend() does before the kernel, with results from `make`: their memory is what is
// missing when it returns. `kernel.function(kernel.context, c)` does the rest, at any time. Calls
// that are more than that, or on other devices than the CPU, give false and are as they were.
bool prepare_call(OpCall& c, MakeResult make, Slot& kernel);
// What run_backend() does after the kernel: versions, views, inference mode.
void finish_call(OpCall& c);

// Whether kernels of the record fill what its shape rule describes. Where data decide sizes they
// set their results, and the rule, if there is one, serves the meta device (dispatch/data_sizes.h).
inline bool is_structured(const OpRecord& r) { return r.meta && !(r.flags & shape_from_data); }

// Runs a given kernel that makes its own results; used for registered layouts.
void run_kernel(OpCall& c, const Slot& kernel);

// RuntimeError if the call's tensors are on different devices or device indices. 0-dim CPU tensors
// are allowed beside others, and operators with the cross_device flag take any.
void check_devices(const OpCall& c);

// For kernels of plug-in devices: allocates the call's results from the record's shape rule, as the
// call path does for built-in kernels.
void allocate_results(OpCall& c);

// The instruction set in use, by PyTorch's names: "DEFAULT", "AVX2" or "AVX512". It is the best of
// the machine unless FACULA_CPU_CAPABILITY (or ATEN_CPU_CAPABILITY) asks for another.
const char* isa_name();

// The device that results of this call live on.
Device result_device(const OpCall& c);

}  // namespace facula
