// The name of an operator's node, and its fields such as `_saved_self` and `_raw_saved_result`.
#include "autograd/node.h"

namespace facula {
namespace {

std::string result_name(const Schema& s, int k) {
  const std::string& name = s.results[static_cast<size_t>(k)].name;
  if (!name.empty()) return name;
  return s.results.size() == 1 ? "result" : "result" + std::to_string(k);
}

// "max_pool2d_with_indices" -> "MaxPool2DWithIndices": a letter after a digit is a capital too.
std::string camel_case(std::string_view name) {
  std::string camel;
  bool upper = true;
  for (char c : name) {
    if (c != '_') camel += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_' || std::isdigit(c);
  }
  return camel;
}

std::string without_underscores(std::string text) {
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text;
}

// How many overloads of the name with a derivative come before this one. Cached in the operator.
int number_of(const Operator& op) {
  int number = op.node_number.load(std::memory_order_relaxed);
  if (number >= 0) return number;
  const Schema& s = op.info().schema;
  const Variant counted = op.variant == Variant::Functional ? op.variant : Variant::Base;
  number = 0;
  for (const Operator* other : find_overloads(s.ns, without_underscores(s.name))) {
    if (!other->info().differentiable || other->variant != counted) continue;
    if (other->record == op.record) break;
    ++number;
  }
  op.node_number.store(number, std::memory_order_relaxed);
  return number;
}

// "_foreach_add_" -> "ForeachAddBackward0"; the digit distinguishes overloads of one name.
std::string derived_name(const Operator& op) {
  const std::string text = without_underscores(op.info().schema.name);
  return camel_case(text) + "Backward" + std::to_string(number_of(op));
}

}  // namespace

std::string OpNode::name() const {
  const OpRecord& record = *op().record;
  if (!*record.node || op().variant == Variant::Functional) return derived_name(op());
  const Schema& schema = op().info().schema;
  for (size_t k = 0; k < Names::most && !record.number_nodes.list[k].empty(); ++k)
    if (!tensor_arg(schema.index_of(record.numbers.list[k])))
      return std::string(record.number_nodes.list[k]);
  return record.node;
}

std::vector<OpNode::Field> OpNode::fields() const {
  const OpInfo& info = op().info();
  const Schema& schema = info.schema;
  // Includes what all rows save, so that fields do not depend on which inputs need gradients.
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

size_t OpNode::list_length(const Field& f) const {
  check_alive();
  const ListArg* list = list_arg(f.index);
  return list ? list->saved.size() : 0;
}

SavedTensor* OpNode::raw_saved(const Field& f) {
  check_alive();
  if (f.kind == Field::Argument) {
    for (TensorArg& t : tensors_)
      if (t.index == f.index && t.saved.defined()) return &t.saved;
    for (ListArg& l : lists_)
      if (l.index == f.index && f.element < l.saved.size() && l.saved[f.element].defined())
        return &l.saved[f.element];
    return nullptr;
  }
  for (auto& [k, saved] : results_)
    if (k == f.index) return &saved;
  return nullptr;
}

}  // namespace facula
