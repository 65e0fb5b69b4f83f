// The toy's kernels, of facula's C interface alone. Each fills results that facula makes, casts,
// resizes and checks by the operator's shape rule: so it serves the operator, its in-place and its
// out= variant. A kernel only gives its work to the stream; it gets tensors of any strides.
#include <atomic>
#include <limits>

#include "facula/extension.h"
#include "queue.h"

namespace toy {
namespace {

using namespace facula::ext;

std::atomic<int64_t> native_calls{0};

// Gives work to the current stream of a device.
void give(facula_device d, Work work) {
  void* stream;
  check(facula_current_stream(d, &stream));
  queue_of(d.index, stream).give(std::move(work));
}

// --- elements

// Calls f(T()) for the C++ type of a dtype; false for dtypes that the toy does not know.
template <class F>
bool with_type(int32_t dtype, F&& f) {
  switch (dtype) {
    case FACULA_FLOAT32:
      return f(float()), true;
    case FACULA_FLOAT64:
      return f(double()), true;
    case FACULA_INT64:
      return f(int64_t()), true;
    case FACULA_INT32:
      return f(int32_t()), true;
    case FACULA_BOOL:
      return f(bool()), true;
  }
  return false;
}
bool is_known(int32_t dtype) {
  return with_type(dtype, [](auto) {});
}
bool is_floating(int32_t dtype) { return dtype == FACULA_FLOAT32 || dtype == FACULA_FLOAT64; }

// A tensor as work that runs later knows it, or a number.
struct Operand {
  void* data = nullptr;  // null: a number
  int32_t dtype = FACULA_FLOAT64;
  std::vector<int64_t> strides;
  double real = 0;
  int64_t integer = 0;

  // C is double or int64_t.
  template <class C>
  C read(int64_t offset) const {
    if (!data) return std::is_same_v<C, double> ? static_cast<C>(real) : static_cast<C>(integer);
    C value{};
    with_type(dtype, [&](auto t) {
      value = static_cast<C>(static_cast<const decltype(t)*>(on_host(data))[offset]);
    });
    return value;
  }
  template <class C>
  void write(int64_t offset, C value) const {
    with_type(dtype, [&](auto t) {
      static_cast<decltype(t)*>(on_host(data))[offset] = static_cast<decltype(t)>(value);
    });
  }
};

Operand operand_of(const Tensor& t) {
  Operand o;
  check(facula_tensor_data(t.get(), &o.data));
  o.dtype = t.dtype();
  o.strides.assign(t.strides().begin(), t.strides().end());
  return o;
}

// A number, or the only element of a tensor that is on the host.
Operand number_of(const Value& v) {
  Operand o;
  if (!v.is_tensor()) {
    o.real = v.number();
    o.integer = v.raw().tag == FACULA_FLOAT ? static_cast<int64_t>(o.real) : v.integer();
    return o;
  }
  void* p;
  check(facula_tensor_data(v.tensor().get(), &p));
  with_type(v.tensor().dtype(), [&](auto t) {
    o.integer = static_cast<int64_t>(*static_cast<const decltype(t)*>(p));
    o.real = static_cast<double>(*static_cast<const decltype(t)*>(p));
  });
  return o;
}

// An argument along the result's dimensions: strides are 0 where it is repeated.
Operand along(const Value& v, Sizes result) {
  if (!v.is_tensor() || v.tensor().device().type == FACULA_CPU) return number_of(v);
  Operand o = operand_of(v.tensor());
  const Sizes own = v.tensor().sizes();
  std::vector<int64_t> strides(result.size(), 0);
  for (size_t d = 0; d < own.size(); ++d)
    if (own[d] != 1) strides[result.size() - own.size() + d] = o.strides[d];
  o.strides = std::move(strides);
  return o;
}

bool is_known(const Value& v) {
  if (v.is_tensor()) return is_known(v.tensor().dtype());
  return v.raw().tag != FACULA_COMPLEX;
}

// --- dtypes that the toy does not know: on the host, by facula's operator, and back

void by_host(Call c, const Operator& op, std::initializer_list<Value> arguments) {
  static const Operator to_copy = Operator::find("aten::_to_copy"),
                        copy = Operator::find("aten::copy_");
  const Value same = Value::by_default();
  std::vector<facula_value> raw;
  std::vector<Tensor> there;
  for (const Value& v : arguments) {
    raw.push_back(v.raw());
    if (!v.is_tensor()) continue;
    there.push_back(to_copy({v.tensor(), same, same, cpu}));
    raw.back().as.tensor = there.back().get();
  }
  facula_value made{};
  check(facula_operator_call(op.get(), raw.data(), raw.size(), &made, 1));
  copy({c.result(), Tensor::take(made.as.tensor)});
}

// --- loops over all elements

// f(offsets) for each element of `sizes`; an offset for each operand.
template <class F>
void for_each_element(const std::vector<int64_t>& sizes, const std::vector<Operand>& operands,
                      F&& f) {
  for (int64_t n : sizes)
    if (n == 0) return;
  std::vector<int64_t> index(sizes.size(), 0), offsets(operands.size(), 0);
  while (true) {
    f(offsets);
    size_t d = sizes.size();
    while (d-- > 0) {
      const int64_t back = ++index[d] == sizes[d] ? sizes[d] : 0;
      for (size_t k = 0; k < operands.size(); ++k)
        if (operands[k].data) offsets[k] += operands[k].strides[d] * (1 - back);
      if (!back) break;
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

// result = f(x, y), computed as double or int64_t. A result of the arguments' own memory is fine.
template <class F>
void elementwise(Call c, const Value& x, const Value& y, F f) {
  ++native_calls;
  const Tensor out = c.result();
  const std::vector<int64_t> sizes(out.sizes().begin(), out.sizes().end());
  std::vector<Operand> operands = {operand_of(out), along(x, out.sizes()), along(y, out.sizes())};
  const bool floating = is_floating(c.compute_dtype());
  give(out.device(), [=, operands = std::move(operands)] {
    for_each_element(sizes, operands, [&](const std::vector<int64_t>& at) {
      const auto compute = [&](auto zero) {
        using C = decltype(zero);
        operands[0].write(at[0], f(operands[1].read<C>(at[1]), operands[2].read<C>(at[2])));
      };
      floating ? compute(double()) : compute(int64_t());
    });
  });
}

// --- operators

void add(Call c) {
  static const Operator op = Operator::find("aten::add.Tensor");
  const Value x = c[0], y = c[1], alpha = c[2];
  if (!is_known(x) || !is_known(y) || !is_known(alpha)) return by_host(c, op, {x, y, alpha});
  const Operand by = number_of(alpha);
  elementwise(c, x, y, [by](auto a, auto b) { return a + by.read<decltype(a)>(0) * b; });
}

void mul(Call c) {
  static const Operator op = Operator::find("aten::mul.Tensor");
  const Value x = c[0], y = c[1];
  if (!is_known(x) || !is_known(y)) return by_host(c, op, {x, y});
  elementwise(c, x, y, [](auto a, auto b) { return a * b; });
}

void neg(Call c) {
  static const Operator op = Operator::find("aten::neg");
  const Value x = c[0];
  if (!is_known(x)) return by_host(c, op, {x});
  elementwise(c, x, Value(0), [](auto a, auto) { return -a; });
}

// Compared in the arguments' common dtype; the result is boolean.
void lt(Call c) {
  static const Operator op = Operator::find("aten::lt.Tensor");
  const Value x = c[0], y = c[1];
  if (!is_known(x) || !is_known(y)) return by_host(c, op, {x, y});
  elementwise(c, x, y, [](auto a, auto b) { return a < b; });
}

// The largest value along a dimension and its place: two results.
void max_dim(Call c) {
  const Tensor x = c.tensor(0);
  require(is_known(x.dtype()), FACULA_NOT_IMPLEMENTED_ERROR,
          std::string("toy: max() has no kernel for ") + facula_dtype_name(x.dtype()));
  ++native_calls;
  Operand from = operand_of(x), values = operand_of(c.result(0)), indices = operand_of(c.result(1));
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end());
  int64_t n = 1, stride = 0;
  if (!sizes.empty()) {
    const auto dim =
        static_cast<size_t>(c[1].integer() + (c[1].integer() < 0 ? x.sizes().size() : 0));
    const auto at = static_cast<std::ptrdiff_t>(dim);
    n = sizes[dim];
    stride = from.strides[dim];
    sizes.erase(sizes.begin() + at);
    from.strides.erase(from.strides.begin() + at);
    for (Operand* o : {&values, &indices})
      if (o->strides.size() > sizes.size()) o->strides.erase(o->strides.begin() + at);
  }
  give(x.device(), [=, operands = std::vector<Operand>{values, indices, from}] {
    for_each_element(sizes, operands, [&](const std::vector<int64_t>& at) {
      int64_t best = 0;
      for (int64_t i = 1; i < n; ++i)
        if (operands[2].read<double>(at[2] + best * stride) <
            operands[2].read<double>(at[2] + i * stride))
          best = i;
      operands[0].write(at[0], operands[2].read<double>(at[2] + best * stride));
      operands[1].write(at[1], best);
    });
  });
}

}  // namespace

void register_kernels(int32_t type) {
  constexpr bool structured = true;
  add_kernel<add>("aten::add.Tensor", type, structured);
  add_kernel<mul>("aten::mul.Tensor", type, structured);
  add_kernel<neg>("aten::neg", type, structured);
  add_kernel<lt>("aten::lt.Tensor", type, structured);
  add_kernel<max_dim>("aten::max.dim", type, structured);
}

}  // namespace toy

extern "C" int64_t toy_native_calls() { return toy::native_calls; }
