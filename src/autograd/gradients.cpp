// Gradients between nodes: converted to the form of the forward result, and added up.
#include "autograd/gradients.h"

#include "autograd/engine.h"
#include "dispatch/modes_watch.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

bool referenced_once(const Tensor& t) {
  return t->use_count() - pending_references(*t.get()) == 1 && !t->extension &&
         !t->layers.has(Layer::Subclass);
}

// Whether nobody else sees the tensor's memory. A view counts if its base is all that shares the
// memory with it, and nobody has the base: the transpose of a product that was just made, say.
bool sole_owner(const Tensor& t) {
  if (!referenced_once(t)) return false;
  if (t->storage->use_count() == 1) return true;
  return t->storage->use_count() == 2 && is_view(t) && referenced_once(t->autograd->base) &&
         t->autograd->base.numel() == t.numel();
}

bool expandable(IntSpan from, IntSpan to) {
  if (to.size() < from.size()) return false;
  const size_t extra = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != to[d + extra] && from[d] != 1) return false;
  return true;
}

Tensor real_part(Tensor g, const Node& from, size_t index) {
  if (from.takes_real_part()) return ops::real(g);
  throw Error(ErrorKind::Runtime, "Function ", from.name(),
              " returned an invalid gradient at index ", index,
              ": expected a real gradient of a real input; got ", name(g.dtype()));
}

// Whether a gradient has the strides of a new .grad: the leaf's if those are dense, else
// contiguous.
bool layout_fits(const Tensor& grad, const Tensor& leaf) {
  if (!is_dense_non_overlapping(leaf.sizes(), leaf.strides())) return grad.is_contiguous();
  for (int64_t d = 0; d < grad.dim(); ++d)
    if (grad.sizes()[d] > 1 && grad.strides()[d] != leaf.strides()[d]) return false;
  return true;
}

Tensor copy_in_layout(const Tensor& grad, const Tensor& leaf) {
  if (layout_fits(grad, leaf)) return ops::clone(grad);
  if (!is_dense_non_overlapping(leaf.sizes(), leaf.strides()))
    return ops::clone(grad, MemoryFormat::Contiguous);
  const Tensor made = ops::new_empty_strided(grad, leaf.sizes(), leaf.strides());
  return ops::copy_(made, grad);
}

}  // namespace

bool grad_layout_enforced() { return thread_state.keeps_gradient_layout; }
void set_grad_layout_enforced(bool on) { thread_state.keeps_gradient_layout = on; }

bool may_add_to(const Tensor& sum) {
  return sum.defined() && sole_owner(sum) && is_dense_non_overlapping(sum.sizes(), sum.strides());
}

Tensor fit_slow(Tensor g, const OutputMeta& m, const Node& from, size_t index) {
  if (!same_sizes(g.sizes(), m.sizes)) {
    if (!expandable(m.sizes, g.sizes()))
      throw Error(ErrorKind::Runtime, "Function ", from.name(),
                  " returned an invalid gradient at index ", index, ": got shape ", str(g.sizes()),
                  ", which cannot become ", str(m.sizes));
    g = ops::sum_to_size(g, m.sizes);
  }
  if (m.dtype == DType::Undefined) return g;
  if (is_complex(g.dtype()) && !is_complex(m.dtype)) g = real_part(std::move(g), from, index);
  const bool moves = g.device() != m.device && g.dim() > 0;
  if (moves && !from.takes_real_part())
    throw Error(ErrorKind::Runtime, "Function ", from.name(),
                " returned an invalid gradient at index ", index, ": expected device ",
                str(m.device), "; got ", str(g.device()));
  // Operators that take several devices return gradients on one of them; they are moved here.
  if (moves) return ops::_to_copy(g, m.any_dtype ? g.dtype() : m.dtype, std::nullopt, m.device);
  if (g.dtype() != m.dtype && !m.any_dtype) g = ops::_to_copy(g, m.dtype);
  return g;
}

Tensor accumulate(Tensor into, const Tensor& more) {
  if (!more.defined()) return into;
  const bool plain = !thread_state.grad_enabled && !modes_watch() && !thread_state.interpreters;
  if (plain && sole_owner(into) && into.is_contiguous() && into.dtype() == more.dtype() &&
      same_sizes(into.sizes(), more.sizes()))
    return ops::add_(into, more);
  return ops::add(into, more);
}

Tensor accumulate_leaf(const Tensor& grad, Tensor&& fresh, const Tensor& leaf) {
  if (grad.defined()) {
    if (has_layout_kind(grad) || has_layout_kind(fresh)) return ops::add(grad, fresh);
    if (thread_state.grad_enabled) return ops::add(grad, fresh);
    return ops::add_(grad, fresh);
  }
  const Tensor taken = std::move(fresh);
  // Strides do not describe such layouts.
  if (has_layout_kind(taken)) return taken->use_count() == 1 ? detached(taken) : ops::clone(taken);
  if (thread_state.grad_enabled) return copy_in_layout(taken, leaf);
  // detached() would lose the Python subclass, so a shared gradient is cloned.
  if (taken->layers.has(Layer::Subclass)) return sole_owner(taken) ? taken : ops::clone(taken);
  const bool fits =
      layout_fits(taken, leaf) || (!thread_state.keeps_gradient_layout &&
                                   is_dense_non_overlapping(taken.sizes(), taken.strides()));
  if (fits && sole_owner(taken)) return detached(taken);
  return detached(copy_in_layout(taken, leaf));
}

}  // namespace facula
