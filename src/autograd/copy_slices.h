// Nodes for views that are changed in place.
#pragma once
#include "autograd/node.h"

namespace facula {

// A view's geometry relative to its base.
struct ViewGeometry {
  IntVec sizes, strides;
  int64_t offset;
};

// The history of a view, as as_strided of its base.
struct ViewOfBase final : Node {
  ViewOfBase(const Tensor& base, const Tensor& view);
  Gradients apply(Gradients grads) override;
  std::string name() const override { return "AsStridedBackward0"; }

 private:
  ViewGeometry view_;
  IntVec base_sizes_, base_strides_;
  int64_t base_offset_;
};

// The history of a base after an in-place change of one of its views: the gradient passes through
// the changed elements by way of `inner`, and past the others unchanged.
struct CopySlices final : Node {
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> inner);
  ~CopySlices() override { inner_->around = nullptr; }
  // Where gradients of the changed view go: as from a view that is taken of the changed base.
  Edge edge_of_view();
  Gradients apply(Gradients grads) override;
  std::string name() const override { return "torch::autograd::CopySlices"; }
  bool takes_real_part() const override { return true; }
  void release_saved() override { inner_->release_saved(); }
  void show_held(HeldVisitor& visitor) const override {
    Node::show_held(visitor);
    visitor.node(inner_.get());
  }

 private:
  Tensor slice_of(const Tensor& whole) const;

  Ref<Node> inner_;
  std::shared_ptr<ViewReplay> replay_;  // where geometry is not enough
  ViewGeometry view_;
  IntVec base_sizes_, base_strides_;
  int64_t base_offset_;
  DType base_dtype_;
  Device base_device_;
  bool base_conj_, base_neg_;
  LayerSet base_layers_;  // of those bits
};

}  // namespace facula
