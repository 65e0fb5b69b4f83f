// Fake tensors: they have sizes, strides, a dtype and a device, but no memory.
#pragma once
#include "core/autograd_meta.h"
#include "dispatch/call.h"
#include "transforms/inner_mode.h"

namespace facula {

extern const ExtensionKind fake_kind;
// Marks a fake tensor. Its device is the one that a real tensor would be on.
struct FakePart final : Extension {
  FakePart() : Extension(fake_kind) {}
  Extension* clone() const override { return new FakePart; }
};
inline bool is_fake(const Tensor& t) { return t->extension && t->extension->kind == &fake_kind; }

// A fake tensor with the geometry, dtype, device and requires_grad of a real one.
Tensor make_fake(const Tensor& t);
// The same of a fake one: another one, with a storage of its own.
Tensor fake_like(const Tensor& t);

// The mode: runs every operator on the meta device and gives results the device that they would
// have. Real tensors are converted to fake ones if `allow_real` is set, and raise otherwise.
struct FakeMode final : InnerMode {
  explicit FakeMode(bool allow) : allow_real(allow) {}
  void handle(OpCall& c) override;
  const bool allow_real;
};

}  // namespace facula
