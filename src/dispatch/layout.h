// Calls on tensors that are not geometry over memory: kernels by kind of the tensor and by device.
#pragma once
#include "dispatch/operator.h"

namespace facula {

// Kernels of one operator for kinds of tensors. Published whole, since calls may be under way.
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
// Puts a kernel in for tensors of a registered kind on one type of device, or on any. The kernel
// makes its results itself. The later registration wins; one for the very device before one for
// any.
LayoutRegistration put_in_layout(Operator& op, const ExtensionKind& kind, int16_t device,
                                 KernelFn function, void* context);
void take_out(const LayoutRegistration& r);
// For every operator that has no kernel for tensors of this kind; a null function takes it out.
void set_layout_fallback(const ExtensionKind& kind, KernelFn function, void* context);

// Whether the operator has a kernel for tensors of this kind on this device.
bool has_layout_kernel(const Operator& op, const ExtensionKind& kind, DeviceType device);

// The handler of Layer::Layout: the operator's kernel for the first tensor's kind, else the kind's
// fallback, else the operator's composite, else NotImplementedError.
void run_layout(OpCall& c);

}  // namespace facula
