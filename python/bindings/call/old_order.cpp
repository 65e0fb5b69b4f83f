#include "bindings/call/old_order.h"

#include <ranges>

namespace facula::python {
namespace {

using Order = std::vector<std::string_view>;

Order split(std::string_view text) {
  Order words;
  for (const auto& word : std::views::split(text, ' '))
    words.emplace_back(word.begin(), word.end());
  return words;
}

// The order of so many arguments, or none: products could go without `alpha`.
Order order_of(const Signature& s, size_t count) {
  Order order = split(s.op->record->old_order);
  if (s.style == Style::Method) std::erase(order, "self");
  if (order.size() == count + 1 && std::ranges::find(order, "beta") != order.end())
    std::erase(order, "alpha");
  return order.size() == count ? order : Order();
}

}  // namespace

std::optional<Reordered> Reordered::of(const Signature& s, const Given& given) {
  const size_t own = s.style == Style::Method ? 1 : 0;
  if (!*s.op->record->old_order || given.positional <= own) return std::nullopt;
  const Order order = order_of(s, given.positional - own);
  if (order.empty()) return std::nullopt;
  Reordered r;
  std::vector<PyObject*> names, values;
  for (size_t i = 0; i < s.parameters.size(); ++i) {
    const Parameter& p = s.parameters[i];
    if (i < own) {
      r.args_.push_back(given.args[i]);
      continue;
    }
    const auto at = std::ranges::find(order, p.argument->name);
    if (at == order.end()) continue;
    PyObject* o = given.args[own + static_cast<size_t>(at - order.begin())];
    if (!p.argument->keyword_only) {
      r.args_.push_back(o);
      continue;
    }
    names.push_back(p.name);
    values.push_back(o);
  }
  r.positional_ = r.args_.size();
  for (size_t k = 0; k < given.keyword_count(); ++k) {
    names.push_back(given.keyword(k));
    values.push_back(given.keyword_value(k));
  }
  r.args_.insert(r.args_.end(), values.begin(), values.end());
  r.keywords_ = Object::take(checked(PyTuple_New(static_cast<Py_ssize_t>(names.size()))));
  for (size_t k = 0; k < names.size(); ++k)
    PyTuple_SET_ITEM(r.keywords_.get(), static_cast<Py_ssize_t>(k), Py_NewRef(names[k]));
  for (const std::string_view word : order)
    r.order_ += (r.order_.empty() ? "" : ", ") + std::string(word == "self" ? "input" : word);
  return r;
}

void Reordered::warn(const Packet& packet) const {
  const std::string text = concat(packet.shown, "(): the order of arguments (", order_,
                                  ") is deprecated: numbers come by keyword, after the tensors");
  warn_user(text.c_str());
}

}  // namespace facula::python
