// What an operator's node shows of itself: `_saved_self`, `_saved_dim`, `_raw_saved_result`.
#include "autograd/node.h"

namespace facula {
namespace {

std::string result_name(const Schema& s, int k) {
  const std::string& name = s.results[static_cast<size_t>(k)].name;
  if (!name.empty()) return name;
  return s.results.size() == 1 ? "result" : "result" + std::to_string(k);
}

}  // namespace

std::vector<OpNode::Field> OpNode::fields() const {
  const OpInfo& info = op().info();
  const Schema& schema = info.schema;
  // What any row of the table saves: a node has the same fields whichever inputs need gradients.
  uint32_t args = 0, results = 0;
  for (int i = 0; i < info.base_args; ++i) {
    const int row = info.derivative_of[i];
    if (row < 0) continue;
    args |= info.saved_args[row];
    results |= info.saved_results[row];
  }
  std::vector<Field> found;
  for (int i = 0; i < info.base_args; ++i) {
    const std::string& name = schema.args[static_cast<size_t>(i)].name;
    const bool single = info.tensor_args >> i & 1, list = info.list_args >> i & 1;
    if (!single && !list)
      found.push_back({Field::Number, i, name});
    else if (args >> i & 1)
      found.push_back({Field::Argument, i, name, list});
    else if (single && info.derivative_of[i] >= 0)
      found.push_back({Field::Sizes, i, name});
  }
  const Schema own = parse_schema(op().record->schema);
  for (; results; results &= results - 1) {
    const int k = std::countr_zero(results);
    found.push_back({Field::Result, k, result_name(own, k)});
  }
  return found;
}

IntVec OpNode::saved_sizes(int i) const {
  const TensorArg* t = tensor_arg(i);
  return t ? t->sizes : IntVec();
}

SavedTensor* OpNode::raw_saved(const Field& f) {
  check_alive();
  if (f.kind == Field::Argument) {
    for (TensorArg& t : tensors_)
      if (t.index == f.index && t.saved.defined()) return &t.saved;
    return nullptr;
  }
  for (auto& [k, saved] : results_)
    if (k == f.index) return &saved;
  return nullptr;
}

}  // namespace facula
