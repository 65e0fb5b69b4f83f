#include "autograd/copy_slices.h"

#include "autograd/variable.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

ViewGeometry geometry_of(const Tensor& t) {
  return {IntVec(t.sizes()), IntVec(t.strides()), t.storage_offset()};
}

}  // namespace

ViewOfBase::ViewOfBase(const Tensor& base, const Tensor& view)
    : view_(geometry_of(view)),
      base_sizes_(base.sizes()),
      base_strides_(base.strides()),
      base_offset_(base.storage_offset()) {
  next.push_back(gradient_edge(base));
  outputs.push_back({IntVec(view.sizes()), view.dtype(), view.device()});
}

Gradients ViewOfBase::apply(Gradients grads) {
  if (!grads[0].defined()) return {Tensor()};
  return {ops::as_strided_backward(grads[0], base_sizes_, base_strides_, base_offset_, view_.sizes,
                                   view_.strides, view_.offset)};
}

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> inner)
    : inner_(std::move(inner)),
      replay_(view->autograd->replay),
      view_(geometry_of(view)),
      base_sizes_(base.sizes()),
      base_strides_(base.strides()),
      base_offset_(base.storage_offset()),
      base_dtype_(base.dtype()),
      base_device_(base.device()),
      base_conj_(base->conj),
      base_neg_(base->neg),
      base_layers_(base->layers & (LayerSet(Layer::Conjugate) | Layer::Negative)) {
  inner_->around = this;
  next = inner_->next;
  if (next.empty()) next.push_back({});
  next[0] = gradient_edge(base);
}

Tensor CopySlices::slice_of(const Tensor& whole) const {
  if (replay_) return replay_->apply(whole);
  return ops::as_strided(whole, view_.sizes, view_.strides, view_.offset - base_offset_);
}

// A view operator reads no elements, so a base without memory is enough to record it.
Edge CopySlices::edge_of_view() {
  Tensor base = empty_strided_tensor(base_sizes_, base_strides_, base_dtype_, base_device_);
  base->conj = base_conj_;
  base->neg = base_neg_;
  base->layers |= base_layers_;
  const GradMode recording(true);
  return gradient_edge(slice_of(with_edge(std::move(base), {Ref<Node>::share(this), 0})));
}

Gradients CopySlices::apply(Gradients grads) {
  if (!grads[0].defined()) return Gradients(next.size());
  // A copy of the gradient with the base's strides, so that the view's geometry applies to it.
  const Tensor whole = ops::new_empty_strided(grads[0], base_sizes_, base_strides_);
  ops::copy_(whole, grads[0]);
  const Tensor slice = slice_of(whole);
  Gradients inner = inner_->apply({ops::clone(slice)});
  if (inner.empty()) inner.resize(1);
  if (inner[0].defined())
    ops::copy_(slice, inner[0]);
  else
    ops::zero_(slice);
  inner[0] = whole;
  return inner;
}

}  // namespace facula
