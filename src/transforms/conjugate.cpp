// Conjugate and negative bits: carried out before operators that do not understand them.
#include "ops/copy.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

bool has_bit(const Tensor& t) { return t->conj || t->neg; }

// Below this layer: the copy must not look for history or modes above.
Tensor carried_out(const Tensor& t) { return has_bit(t) ? ops::clone(t) : t; }

void write_back(const OpCall& c, const ReplacedArgs& plain) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    if (c.args[i].is_tensor() && has_bit(c.tensor(i))) ops::copy_(c.tensor(i), plain.tensor(i));
    if (c.args[i].tag != Tag::TensorList) continue;
    const auto before = c.args[i].as_tensors(), after = plain[i].as_tensors();
    for (size_t k = 0; k < before.size(); ++k)
      if (before[k].defined() && has_bit(before[k])) ops::copy_(before[k], after[k]);
  }
}

// Results that are written arguments are the caller's own tensors, not the copies.
void give_back_arguments(OpCall& c) {
  for (int k = 0; k < c.info->results; ++k) {
    const int from = c.info->alias_of[k];
    if (from >= 0 && (c.info->mutated >> from & 1) && c.args[from].is_tensor())
      set_result(c.results[k], c.tensor(from));
  }
}

}  // namespace

void conjugate_layer(OpCall& c) {
  const LayerSet bits = LayerSet(Layer::Conjugate) | Layer::Negative;
  c.layers -= bits;
  if (c.op->record->flags & handles_conj) return redispatch(c, Layer::Autograd);
  Value* const given = c.args;
  ReplacedArgs plain(c, [](const Tensor& t, int) { return carried_out(t); });
  c.args = plain.values();
  redispatch(c, Layer::Autograd);
  c.args = given;
  if (!c.info->mutated) return;
  write_back(c, plain);
  give_back_arguments(c);
}

}  // namespace facula
