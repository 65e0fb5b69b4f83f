// C++20 over facula/c.h: tensors that count themselves, exceptions for codes, functions as kernels.
// Header-only, and nothing but c.h's functions is called: a library that uses it is compiled once
// and runs with any later build.
#pragma once
#include <concepts>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facula/c.h"

namespace facula::ext {

// --- errors

// What facula reports; in callbacks, whatever is thrown becomes an error of the call.
class Error : public std::runtime_error {
 public:
  Error(facula_status code, const std::string& text) : runtime_error(text), code_(code) {}
  facula_status code() const { return code_; }

 private:
  facula_status code_;
};

inline void check(facula_status code) {
  if (code != FACULA_OK) throw Error(code, facula_error_text());
}
inline void require(bool ok, facula_status code, const std::string& text) {
  if (!ok) throw Error(code, text);
}

// Runs the body of a callback; what it throws becomes a code.
template <class F>
facula_status guarded(F&& body) noexcept {
  try {
    body();
    return FACULA_OK;
  } catch (const Error& e) {
    // An error that facula reported is passed on as it is: Python's exception with it.
    if (std::string_view(facula_error_text()) == e.what()) return e.code();
    return facula_set_error(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return facula_set_error(FACULA_MEMORY_ERROR, "not enough memory");
  } catch (const std::exception& e) {
    return facula_set_error(FACULA_RUNTIME_ERROR, e.what());
  } catch (...) {
    return facula_set_error(FACULA_RUNTIME_ERROR, "an exception of an unknown type");
  }
}

// --- tensors

template <class T>
inline constexpr int32_t dtype_number = -1;
template <>
inline constexpr int32_t dtype_number<float> = FACULA_FLOAT32;
template <>
inline constexpr int32_t dtype_number<double> = FACULA_FLOAT64;
template <>
inline constexpr int32_t dtype_number<uint8_t> = FACULA_UINT8;
template <>
inline constexpr int32_t dtype_number<int8_t> = FACULA_INT8;
template <>
inline constexpr int32_t dtype_number<int16_t> = FACULA_INT16;
template <>
inline constexpr int32_t dtype_number<int32_t> = FACULA_INT32;
template <>
inline constexpr int32_t dtype_number<int64_t> = FACULA_INT64;
template <>
inline constexpr int32_t dtype_number<bool> = FACULA_BOOL;

using Sizes = std::span<const int64_t>;
inline constexpr facula_device cpu{FACULA_CPU, -1};

// A reference to a tensor; may be undefined.
class Tensor {
 public:
  Tensor() = default;
  static Tensor take(facula_tensor t) { return Tensor(t); }
  static Tensor share(facula_tensor t) { return Tensor(facula_tensor_retain(t)); }
  Tensor(const Tensor& o) : t_(facula_tensor_retain(o.t_)) {}
  Tensor(Tensor&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() { facula_tensor_release(t_); }

  static Tensor empty(Sizes sizes, int32_t dtype, facula_device device = cpu) {
    facula_tensor t;
    check(facula_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(), dtype, device, &t));
    return take(t);
  }

  explicit operator bool() const { return t_ != nullptr; }
  facula_tensor get() const { return t_; }
  facula_tensor leak() { return std::exchange(t_, nullptr); }
  Sizes sizes() const {
    return {facula_tensor_sizes(t_), static_cast<size_t>(facula_tensor_ndim(t_))};
  }
  Sizes strides() const {
    const int64_t* s;
    check(facula_tensor_strides(t_, &s));
    return {s, static_cast<size_t>(facula_tensor_ndim(t_))};
  }
  int64_t numel() const { return facula_tensor_numel(t_); }
  int32_t dtype() const { return facula_tensor_dtype(t_); }
  facula_device device() const { return facula_tensor_device(t_); }
  bool is_contiguous() const { return facula_tensor_is_contiguous(t_) != 0; }
  // The first element; TypeError where the dtype is another.
  template <class T>
  T* data() const {
    static_assert(dtype_number<T> >= 0, "this C++ type stands for no dtype");
    require(dtype() == dtype_number<T>, FACULA_TYPE_ERROR,
            std::string("expected a tensor of ") + facula_dtype_name(dtype_number<T>) + "; got " +
                facula_dtype_name(dtype()));
    void* p;
    check(facula_tensor_data(t_, &p));
    return static_cast<T*>(p);
  }

 private:
  explicit Tensor(facula_tensor t) : t_(t) {}
  facula_tensor t_ = nullptr;
};

// --- values

// An argument or result. It keeps its tensor; of lists and strings it borrows what it is made of.
class Value {
 public:
  Value() = default;
  Value(const facula_value& v) : v_(v) {
    if (v.tag == FACULA_TENSOR) tensor_ = Tensor::share(v.as.tensor);
  }
  Value(Tensor t) : tensor_(std::move(t)) {
    v_.tag = FACULA_TENSOR;
    v_.as.tensor = tensor_.get();
  }
  Value(double d) {
    v_.tag = FACULA_FLOAT;
    v_.as.d = d;
  }
  template <std::integral I>
  Value(I i) {
    v_.tag = std::same_as<I, bool> ? FACULA_BOOLEAN : FACULA_INT;
    v_.as.i = static_cast<int64_t>(i);
  }
  Value(Sizes list) {
    v_.tag = FACULA_INT_LIST;
    v_.length = static_cast<uint32_t>(list.size());
    v_.as.ints = list.data();
  }
  Value(std::string_view s) {
    v_.tag = FACULA_STRING;
    v_.length = static_cast<uint32_t>(s.size());
    v_.as.chars = s.data();
  }
  Value(const char* s) : Value(std::string_view(s)) {}
  Value(facula_device d) {
    v_.tag = FACULA_DEVICE;
    v_.as.device = d;
  }
  static Value dtype(int32_t number) {
    Value v;
    v.v_.tag = FACULA_DTYPE;
    v.v_.as.i = number;
    return v;
  }
  static Value by_default() {
    Value v;
    v.v_.tag = FACULA_DEFAULT;
    return v;
  }

  const facula_value& raw() const { return v_; }
  bool is_none() const { return v_.tag == FACULA_NONE; }
  bool is_tensor() const { return v_.tag == FACULA_TENSOR; }
  const Tensor& tensor() const { return tensor_; }  // undefined where it is no tensor
  int64_t integer() const {
    require(v_.tag == FACULA_INT || v_.tag == FACULA_BOOLEAN, FACULA_TYPE_ERROR,
            "expected an integer");
    return v_.as.i;
  }
  double number() const {
    if (v_.tag == FACULA_FLOAT) return v_.as.d;
    return static_cast<double>(integer());
  }
  Sizes integers() const {
    require(v_.tag == FACULA_INT_LIST, FACULA_TYPE_ERROR, "expected a list of integers");
    return {v_.as.ints, v_.length};
  }

 private:
  facula_value v_{};
  Tensor tensor_;
};

// --- operators

class Operator {
 public:
  Operator() = default;
  explicit Operator(facula_operator op) : op_(op) {}
  // Looks "aten::add.Tensor" up; keep it.
  static Operator find(const char* name) {
    facula_operator op;
    check(facula_operator_find(name, &op));
    return Operator(op);
  }
  facula_operator get() const { return op_; }
  // Calls it; its first result where that is a tensor. Arguments left out take their defaults.
  Tensor operator()(std::initializer_list<Value> arguments) const {
    std::vector<facula_value> list;
    for (const Value& v : arguments) list.push_back(v.raw());
    facula_value result{};
    check(facula_operator_call(op_, list.data(), list.size(), &result, 1));
    if (result.tag == FACULA_TENSOR) return Tensor::take(result.as.tensor);
    facula_value_release(&result);
    return {};
  }

 private:
  facula_operator op_ = nullptr;
};

// --- what callbacks are given

class Call {
 public:
  explicit Call(facula_call c) : c_(c) {}
  Value operator[](int32_t i) const {
    facula_value v;
    check(facula_call_argument(c_, i, &v));
    return v;
  }
  Tensor tensor(int32_t i) const { return (*this)[i].tensor(); }
  // The tensor that the kernel fills, where the operator has a shape rule.
  Tensor result(int32_t i = 0) const {
    facula_tensor t;
    check(facula_call_result(c_, i, &t));
    return Tensor::share(t);
  }
  void set_result(int32_t i, const Value& v) const {
    check(facula_call_set_result(c_, i, &v.raw()));
  }
  // The dtype to compute in, where the operator has a shape rule.
  int32_t compute_dtype() const { return facula_call_compute_dtype(c_); }

 private:
  facula_call c_;
};

class Meta {
 public:
  explicit Meta(facula_meta m) : m_(m) {}
  Value operator[](int32_t i) const {
    facula_value v;
    check(facula_meta_argument(m_, i, &v));
    return v;
  }
  Tensor tensor(int32_t i) const { return (*this)[i].tensor(); }
  void result(int32_t i, Sizes sizes, int32_t dtype) const {
    check(facula_meta_set_result(m_, i, static_cast<int32_t>(sizes.size()), sizes.data(), nullptr,
                                 dtype));
  }

 private:
  facula_meta m_;
};

class Backward {
 public:
  explicit Backward(facula_backward b) : b_(b) {}
  Tensor grad(int32_t i = 0) const {
    facula_tensor t;
    check(facula_backward_grad(b_, i, &t));
    return Tensor::share(t);
  }
  Tensor saved(const char* name) const {
    facula_tensor t;
    check(facula_backward_saved(b_, name, &t));
    return Tensor::take(t);
  }
  Value argument(const char* name) const {
    facula_value v;
    check(facula_backward_argument(b_, name, &v));
    return v;
  }
  bool needs(const char* name) const {
    int32_t yes;
    check(facula_backward_needs(b_, name, &yes));
    return yes != 0;
  }
  void set(const char* name, const Tensor& t) const {
    check(facula_backward_set(b_, name, t.get()));
  }

 private:
  facula_backward b_;
};

class Forward {
 public:
  explicit Forward(facula_forward f) : f_(f) {}
  Value argument(const char* name) const {
    facula_value v;
    check(facula_forward_argument(f_, name, &v));
    return v;
  }
  // Undefined where the argument has none, which means zero.
  Tensor tangent(const char* name) const {
    facula_tensor t;
    check(facula_forward_tangent(f_, name, &t));
    return Tensor::share(t);
  }
  Tensor result(int32_t i = 0) const {
    facula_tensor t;
    check(facula_forward_result(f_, i, &t));
    return Tensor::share(t);
  }
  void set(const Tensor& t, int32_t i = 0) const { check(facula_forward_set(f_, i, t.get())); }

 private:
  facula_forward f_;
};

template <auto F>
facula_status kernel(void*, facula_call c) {
  return guarded([&] { F(Call(c)); });
}
template <auto F>
facula_status meta_rule(void*, facula_meta m) {
  return guarded([&] { F(Meta(m)); });
}
template <auto F>
facula_status backward_rule(void*, facula_backward b) {
  return guarded([&] { F(Backward(b)); });
}

template <auto F>
facula_status forward_rule(void*, facula_forward f) {
  return guarded([&] { F(Forward(f)); });
}

// --- registering

// Defines an operator:
//   OperatorBuilder("mine::twice(Tensor x) -> Tensor").meta<shape>().cpu<twice>()
//       .vjp<twice_gradient>("x").define();
// where shape takes an ext::Meta, a kernel an ext::Call and a rule an ext::Backward.
class OperatorBuilder {
 public:
  explicit OperatorBuilder(const char* schema) {
    FACULA_INIT(&d_);
    d_.schema = schema;
  }
  OperatorBuilder& doc(const char* text) {
    d_.doc = text;
    return *this;
  }
  template <auto F>
  OperatorBuilder& meta() {
    d_.meta = meta_rule<F>;
    return *this;
  }
  template <auto F>
  OperatorBuilder& cpu() {
    d_.cpu = kernel<F>;
    return *this;
  }
  // For every device, by calling other operators; composite says whether it has derivatives.
  template <auto F>
  OperatorBuilder& composite(bool own_derivatives = false) {
    d_.any = kernel<F>;
    d_.composite = own_derivatives ? FACULA_COMPOSITE_EXPLICIT : FACULA_COMPOSITE_IMPLICIT;
    return *this;
  }
  // The kernel for every device of what is no composite.
  template <auto F>
  OperatorBuilder& any() {
    d_.any = kernel<F>;
    return *this;
  }
  template <auto F>
  OperatorBuilder& vjp(const char* inputs, const char* saves = "") {
    facula_derivative row;
    FACULA_INIT(&row);
    row.inputs = inputs;
    row.saves = saves;
    row.rule = backward_rule<F>;
    rows_.push_back(row);
    return *this;
  }
  OperatorBuilder& pointwise() {
    d_.flags |= FACULA_POINTWISE;
    d_.pointwise_batch = 1;
    return *this;
  }
  // The tangent of the results from those of the arguments.
  template <auto F>
  OperatorBuilder& jvp() {
    d_.jvp = forward_rule<F>;
    return *this;
  }
  // One of facula's batching rules, FACULA_BATCH_...; the arguments that name dimensions or list
  // sizes, where they are called otherwise than "dim" and "size".
  OperatorBuilder& batch(int32_t family, const char* dims = nullptr, const char* sizes = nullptr) {
    d_.batch_family = family;
    d_.dims = dims;
    d_.sizes = sizes;
    return *this;
  }
  OperatorBuilder& not_differentiable(const char* names) {
    d_.not_differentiable = names;
    return *this;
  }
  Operator define() {
    d_.derivatives = rows_.data();
    d_.derivative_count = rows_.size();
    facula_operator op;
    check(facula_operator_register(&d_, &op));
    return Operator(op);
  }

 private:
  facula_operator_definition d_;
  std::vector<facula_derivative> rows_;
};

// A kernel of facula's operator "aten::add.Tensor", or of another library's, on a type of device;
// a structured one fills results that the library makes.
template <auto F>
void add_kernel(const char* name, int32_t device_type, bool structured) {
  facula_kernel_registration r;
  FACULA_INIT(&r);
  r.operator_name = name;
  r.kernel = kernel<F>;
  r.device_type = device_type;
  r.structured = structured;
  check(facula_kernel_register(&r));
}

// --- kinds of tensors, each with a payload of its own

template <class Payload>
class Kind {
 public:
  // What the payload says of its tensors, as static functions where it has them:
  //   std::string text(const Payload&);  std::vector<Tensor> parts(const Payload&);
  //   Tensor from_parts(Sizes, int32_t dtype, facula_device, std::vector<Tensor>);
  void define(const char* name, const char* layout, const char* impl_name, const char* key) {
    facula_kind_definition d;
    FACULA_INIT(&d);
    d.name = name;
    d.layout = layout;
    d.impl_name = impl_name;
    d.dispatch_key = key;
    d.context = this;
    d.destroy = [](void*, void* p) { delete static_cast<Payload*>(p); };
    if constexpr (requires(const Payload& p) { Payload::text(p); }) d.text = text;
    if constexpr (requires(const Payload& p) { Payload::parts(p); }) {
      d.parts = parts;
      d.from_parts = from_parts;
    }
    check(facula_kind_register(&d, &kind_));
  }
  facula_kind get() const { return kind_; }

  Tensor make(std::unique_ptr<Payload> payload, Sizes sizes, int32_t dtype,
              facula_device device) const {
    facula_tensor t;
    check(facula_tensor_of_kind(kind_, payload.release(), static_cast<int32_t>(sizes.size()),
                                sizes.data(), dtype, device, &t));
    return Tensor::take(t);
  }
  bool has(const Tensor& t) const { return t && facula_tensor_kind(t.get()) == kind_; }
  // RuntimeError where the tensor is of another kind.
  Payload& payload(const Tensor& t) const {
    void* p;
    check(facula_tensor_payload(t.get(), kind_, &p));
    return *static_cast<Payload*>(p);
  }
  // A kernel for tensors of this kind, on one type of device or on any; it sets its results.
  template <auto F>
  void add_kernel(const char* name, int32_t device_type = FACULA_ANY_DEVICE) const {
    facula_kernel_registration r;
    FACULA_INIT(&r);
    r.operator_name = name;
    r.kernel = kernel<F>;
    r.device_type = device_type;
    r.kind = kind_;
    check(facula_kernel_register(&r));
  }

 private:
  static const Payload& of(void* context, facula_tensor t) {
    void* p;
    check(facula_tensor_payload(t, static_cast<Kind*>(context)->kind_, &p));
    return *static_cast<const Payload*>(p);
  }
  static facula_status text(void* context, facula_tensor t, facula_text out) {
    return guarded([&] {
      const std::string said = Payload::text(of(context, t));
      facula_text_append(out, said.data(), said.size());
    });
  }
  static facula_status parts(void* context, facula_tensor t, facula_list out) {
    return guarded([&] {
      for (const Tensor& part : Payload::parts(of(context, t))) facula_list_append(out, part.get());
    });
  }
  static facula_status from_parts(void*, int32_t ndim, const int64_t* sizes, int32_t dtype,
                                  facula_device device, const facula_tensor* list, size_t count,
                                  facula_tensor* out) {
    return guarded([&] {
      std::vector<Tensor> given;
      for (size_t i = 0; i < count; ++i) given.push_back(Tensor::share(list[i]));
      const Sizes n(sizes, static_cast<size_t>(ndim));
      *out = Payload::from_parts(n, dtype, device, std::move(given)).leak();
    });
  }

  facula_kind kind_ = nullptr;
};

}  // namespace facula::ext

// Names the function that registers everything; facula.ops.load_library calls it, and an error that
// it throws is raised there.
#define FACULA_EXTENSION(function)                               \
  extern "C" FACULA_API facula_status facula_extension_start() { \
    return facula::ext::guarded([] { function(); });             \
  }
