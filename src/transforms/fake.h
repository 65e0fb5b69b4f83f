// Fake tensors: sizes, strides, dtype and a pretended device, without memory.
#pragma once
#include "core/autograd_meta.h"
#include "dispatch/call.h"
#include "transforms/inner_mode.h"

namespace facula {

extern const ExtensionKind fake_kind;
// Marks a tensor whose storage has a size but no memory; its device is what it pretends to be on.
struct FakePart final : Extension {
  FakePart() : Extension(fake_kind) {}
  Extension* clone() const override { return new FakePart; }
};
inline bool is_fake(const Tensor& t) { return t->extension && t->extension->kind == &fake_kind; }

// A fake tensor with the geometry, dtype, device and leaf state of a real one.
Tensor make_fake(const Tensor& t);

// The mode: runs every operator on the meta device; results pretend to be where they would be.
// Real tensors are taken as fakes where `allow_real` is set, else raise.
struct FakeMode final : InnerMode {
  explicit FakeMode(bool allow) : allow_real(allow) {}
  void handle(OpCall& c) override;
  const bool allow_real;
};

}  // namespace facula
