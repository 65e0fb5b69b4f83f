#include "dispatch/debug_print.h"

#include "core/debug.h"
#include "dispatch/backend.h"

namespace facula {
namespace {

std::string brief(const Tensor& t) {
  if (!t.defined()) return "None";
  std::string s = concat(name(t.dtype()), str(t.sizes()));
  if (!t.device().is_cpu()) s += concat("@", str(t.device()));
  if (t->layers.has(Layer::Autograd)) s += " with autograd";
  return s;
}

template <class List, class One>
std::string list_of(const List& list, One one) {
  constexpr size_t most = 8;
  std::string s = "[";
  for (size_t i = 0; i < list.size() && i < most; ++i) s += (i ? ", " : "") + one(list[i]);
  return s + (list.size() > most ? concat(", ... ", list.size(), " in all]") : "]");
}

}  // namespace

const char* layer_name(Layer layer) {
  switch (layer) {
    case Layer::CPU:
      return "CPU";
    case Layer::CUDA:
      return "CUDA";
    case Layer::Meta:
      return "Meta";
    case Layer::Layout:
      return "Layout";
    case Layer::Subclass:
      return "Subclass";
    case Layer::Modes:
      return "Modes";
    case Layer::LevelExit:
      return "LevelExit";
    case Layer::Negative:
      return "Negative";
    case Layer::Conjugate:
      return "Conjugate";
    case Layer::Autograd:
      return "Autograd";
    case Layer::PreAutogradTrace:
      return "PreAutogradTrace";
    case Layer::Transforms:
      return "Transforms";
    case Layer::Autocast:
      return "Autocast";
    default:
      return "Plugin";
  }
}

std::string brief(const Value& v) {
  switch (v.tag) {
    case Tag::None:
      return "None";
    case Tag::Tensor:
      return brief(v.as_tensor());
    case Tag::Int:
    case Tag::Float:
    case Tag::Complex:
      return v.as_scalar().str();
    case Tag::Bool:
      return v.b ? "True" : "False";
    case Tag::Str:
      return concat("'", v.as_str(), "'");
    case Tag::DType:
      return name(v.dtype);
    case Tag::Device:
      return concat("device('", str(v.device), "')");
    case Tag::IntList:
      return str(v.as_ints());
    case Tag::TensorList:
      return list_of(v.as_tensors(), [](const Tensor& t) { return brief(t); });
    case Tag::FloatList:
      return list_of(std::span(v.doubles, v.length), [](double d) { return concat(d); });
    case Tag::BoolList:
      return list_of(std::span(v.bools, v.length),
                     [](bool b) { return std::string(b ? "True" : "False"); });
    case Tag::ValueList:
    case Tag::Tuple:
    case Tag::Dict:
      return list_of(std::span(v.values, v.length), [](const Value& one) { return brief(one); });
    default:
      return concat("<", name(v.tag), ">");
  }
}

std::string brief(const OpCall& c) {
  std::string s = c.op->name() + "(";
  for (int i = 0; i < c.info->args; ++i)
    s += concat(i ? ", " : "", c.info->schema.args[static_cast<size_t>(i)].name, "=",
                brief(c.args[i]));
  return s + ")";
}

void print_call(OpCall& c, void (*body)(OpCall&), std::source_location where) {
  debug::print(debug::Level::Calls, brief(c), where);
  const debug::Deeper deeper;
  body(c);
  if (!debug::prints(debug::Level::Layers)) return;
  std::string s = "gives ";
  for (int k = 0; k < c.info->results; ++k) s += (k ? ", " : "") + brief(c.results[k]);
  debug::print(debug::Level::Layers, s, where);
}

void print_layer(const OpCall& c, Layer layer, std::source_location where) {
  if (!debug::prints(debug::Level::Layers)) return;
  std::string s = concat("layer ", layer_name(layer));
  if (c.op->slots[static_cast<int>(layer)].load(std::memory_order_relaxed))
    s += ", a kernel registered for it";
  else if (layer == Layer::CPU)
    s += concat(", instruction set ", isa_name());
  debug::print(debug::Level::Layers, s, where);
}

}  // namespace facula
