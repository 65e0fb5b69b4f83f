// Nodes for in-place changes of views.
#pragma once
#include "autograd/node.h"

namespace facula {

// A view's geometry relative to its base.
struct ViewGeometry {
  IntVec sizes, strides;
  int64_t offset;
};

// The grad_fn of a view whose base was changed: as_strided of the base.
struct ViewOfBase final : Node {
  ViewOfBase(const Tensor& base, const Tensor& view);
  Gradients apply(Gradients grads) override;
  std::string name() const override { return "AsStridedBackward0"; }

 private:
  ViewGeometry view_;
  IntVec base_sizes_, base_strides_;
  int64_t base_offset_;
};

// The grad_fn of a base after an in-place change of one of its views. Gradients of the changed
// elements go through `inner`, the node of the change; gradients of the others pass unchanged.
struct CopySlices final : Node {
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> inner);
  ~CopySlices() override { inner_->around = nullptr; }
  // The edge for gradients of the changed view: that of a view of the changed base.
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
  std::shared_ptr<ViewReplay> replay_;  // for views that as_strided cannot express
  ViewGeometry view_;
  IntVec base_sizes_, base_strides_;
  int64_t base_offset_;
  DType base_dtype_;
  Device base_device_;
  bool base_conj_, base_neg_;
  LayerSet base_layers_;  // the layers of these two bits
};

}  // namespace facula
