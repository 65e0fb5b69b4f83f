// Bookkeeping of views: every view knows its base, how it was made, and shares its version.
#include "core/autograd_meta.h"
#include "dispatch/call.h"

namespace facula {
namespace {

ViewKind view_kind(bool multi) {
  if (thread_state.inference) return ViewKind::Inference;
  if (!thread_state.grad_enabled) return ViewKind::NoGrad;
  return multi ? ViewKind::MultiOutput : ViewKind::Default;
}

// Takes the view again from another tensor, by the calls that made it.
struct ReplayedCall final : ViewReplay {
  ReplayedCall(const OpCall& c, int arg, int result, size_t element, const Tensor& of)
      : call_(*c.op, c.args, ~(1u << arg)), arg_(arg), result_(result), element_(element) {
    if (!is_view(of)) return;
    before_ = of->autograd->replay;
    sizes_ = IntVec(of.sizes());
    strides_ = IntVec(of.strides());
    offset_ = of.storage_offset() - of->autograd->base.storage_offset();
    strided_ = !before_;
  }

  Tensor apply(const Tensor& base) const override {
    const Tensor from = origin(base);
    const auto n = static_cast<size_t>(call_.size());
    std::vector<Value> args(call_.args(), call_.args() + n);
    args[static_cast<size_t>(arg_)] = Value::of_tensor(from.get());
    Results<8> r;
    call(*call_.op(), args.data(), r.slots);
    Value& slot = r.slots[result_];
    return slot.tag == Tag::TensorList ? Tensor(slot.as_tensors()[element_]) : take_tensor(slot);
  }

 private:
  Tensor origin(const Tensor& base) const {
    if (before_) return before_->apply(base);
    if (!strided_) return base;
    static const Operator* as_strided = find_operator("aten", "as_strided", "");
    Value args[] = {pack(base), pack(IntSpan(sizes_)), pack(IntSpan(strides_)),
                    pack(offset_ + base.storage_offset())};
    return call_tensor(*as_strided, args);
  }

  SavedCall call_;
  const int arg_, result_;
  const size_t element_;
  std::shared_ptr<ViewReplay> before_;
  bool strided_ = false;
  IntVec sizes_, strides_;
  int64_t offset_ = 0;
};

// Sizes, strides and offset say all of a view that reads its base's elements as they are. Those of
// a wrapper are not those of the tensors that it holds.
bool geometry_suffices(const Tensor& view, const Tensor& of, const Tensor& base) {
  return !view->layers.has(Layer::Subclass) && view.dtype() == base.dtype() &&
         view->conj == base->conj && view->neg == base->neg &&
         !(is_view(of) && of->autograd->replay);
}

struct ViewOrigin {
  const OpCall& call;
  int arg, result;
  bool multi;
};

// Whether gradients flow from the view to what it is of: not for detach, nor for float bits as
// ints.
bool flows(const Tensor& view, const Tensor& of, const ViewOrigin& o) {
  const bool differentiable = o.call.info->differentiable_results >> o.result & 1;
  return differentiable && (is_differentiable(view.dtype()) || !is_differentiable(of.dtype()));
}

void note_view(const Tensor& view, size_t element, const Tensor& of, const ViewOrigin& origin) {
  if (view.is_same(of) || !(view->storage == of->storage) || is_view(view)) return;
  if (of->inference) {
    view->inference = true;
    return;
  }
  view->shared_version = of->share_version();
  if (!flows(view, of, origin)) return;
  AutogradMeta& m = autograd_meta(view);
  m.base = is_view(of) ? of->autograd->base : of;
  m.view_kind = view_kind(origin.multi);
  // What may not be changed passes that on to its own views.
  if (m.view_kind == ViewKind::Default && is_view(of)) m.view_kind = of->autograd->view_kind;
  m.view_version = view->current_version();
  // The base may get a history later, by another of its views.
  if (is_differentiable(view.dtype())) view->layers |= Layer::Autograd;
  if (!geometry_suffices(view, of, m.base))
    m.replay = std::make_shared<ReplayedCall>(origin.call, origin.arg, origin.result, element, of);
}

}  // namespace

void note_views(OpCall& c) {
  for (int k = 0; k < c.info->results; ++k) {
    const int from = c.info->alias_of[k];
    if (from < 0 || (c.info->mutated >> from & 1) || !c.args[from].is_tensor()) continue;
    const Tensor& of = c.tensor(from);
    const ViewOrigin origin{c, from, k, c.info->multi_view};
    if (c.results[k].is_tensor()) note_view(c.results[k].as_tensor(), 0, of, origin);
    if (c.results[k].tag != Tag::TensorList) continue;
    size_t element = 0;
    for (const Tensor& t : c.results[k].as_tensors())
      note_view(t, element++, of, {c, from, k, true});
  }
}

}  // namespace facula
