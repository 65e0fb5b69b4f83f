// Conjugate and negative bits: applied to the values before operators that do not handle the bits.
#include "dispatch/mutations.h"
#include "ops/create/copy.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

bool has_bit(const Tensor& t) { return t->conj || t->neg; }

// A copy with the bits applied; made below this layer, so that it is not recorded or traced.
Tensor carried_out(const Tensor& t) { return has_bit(t) ? ops::clone(t) : t; }

void write_back(const OpCall& c, ReplacedArgs& plain) {
  for_each_written_pair(c, plain.values(), [](const Tensor& to, const Tensor& from) {
    if (has_bit(to)) ops::copy_(to, from);
  });
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
  give_written(c);
}

}  // namespace facula
