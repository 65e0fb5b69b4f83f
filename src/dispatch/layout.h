// Calls on tensors that are not strided: their kernels are found by extension kind and device.
#pragma once
#include "dispatch/operator.h"

namespace facula {

// The kernels of one operator for extension kinds. Replaced as a whole and never changed, since
// other threads may be reading it.
struct LayoutKernels {
  struct Row {
    uint8_t kind = 0;    // ExtensionKind::id
    int16_t device = 0;  // DeviceType, or any_device
    const Slot* slot = nullptr;
  };
  std::vector<Row> rows;
};
inline constexpr int16_t any_device = -1;

struct LayoutRegistration {
  Operator* op = nullptr;
  uint8_t kind = 0;
  int16_t device = any_device;
  const Slot* slot = nullptr;
};
// Registers a kernel for tensors of an extension kind on one device type or on any. The kernel
// makes its own results. A kernel for the exact device is preferred, then the later registration.
LayoutRegistration put_in_layout(Operator& op, const ExtensionKind& kind, int16_t device,
                                 KernelFn function, void* context);
void take_out(const LayoutRegistration& r);
// Registers a fallback for operators that have no kernel for the kind; a null function removes it.
void set_layout_fallback(const ExtensionKind& kind, KernelFn function, void* context);

// Whether the operator has a kernel for tensors of this kind on this device.
bool has_layout_kernel(const Operator& op, const ExtensionKind& kind, DeviceType device);

// What happens to a call on tensors of a kind that has no kernel for it: the operator's composite,
// or the base form and copy_ for what writes; else NotImplementedError. For fallbacks that leave
// some operators alone.
void run_without_kernel(OpCall& c, const ExtensionKind& kind);

// The handler of Layer::Layout: the operator's kernel for the first tensor's kind, else the kind's
// fallback, else the operator's composite, else NotImplementedError.
void run_layout(OpCall& c);

}  // namespace facula
