// Operators called by a library, and what kernels and rules of a library ask of their call.
#include "c_api/calls.h"

#include "autograd/node.h"
#include "dispatch/call.h"
#include "dispatch/operator_text.h"

namespace facula::c_api {

void run_kernel(void* context, OpCall& c) {
  const auto* k = static_cast<const KernelContext*>(context);
  facula_call_s call{c};
  run_callback(k->kernel, k->context, &call);
}

Operator& operator_named(const char* name, const char* function) {
  const std::string_view full = given(name, function, "a name");
  const size_t colons = full.find("::");
  const std::string_view ns = colons == full.npos ? "aten" : full.substr(0, colons);
  const std::string_view rest = colons == full.npos ? full : full.substr(colons + 2);
  const size_t dot = rest.find('.');
  const std::string_view overload = dot == rest.npos ? "" : rest.substr(dot + 1);
  Operator* op = find_operator(ns, rest.substr(0, dot), overload);
  check_kind(ErrorKind::Key, op != nullptr, "no operator is named '", full, "'");
  return *op;
}

namespace {

// Arguments of a call from outside: checked by the schema, defaults filled in.
class Arguments {
 public:
  Arguments(const Operator& op, const facula_value* given, size_t n) : values_(op.info().args) {
    const Schema& s = op.info().schema;
    check_type(n <= values_.size(), op, "(): expected at most ", values_.size(), " arguments; got ",
               n);
    check_type(given || n == 0, op, "(): expected arguments; got a null pointer");
    for (size_t i = 0; i < values_.size(); ++i) {
      const Argument& a = s.args[i];
      if (i >= n || given[i].tag == FACULA_DEFAULT) {
        check_type(a.has_default || a.type.optional, op, "(): missing the argument '", a.name, "'");
        values_[i] = a.has_default ? default_value(a) : Value();
        continue;
      }
      values_[i] = reader_.read(given[i]);
      check_type(fits(a.type, op.record->numbers.has(a.name), values_[i]), op, "(): argument '",
                 a.name, "' must be ", a.type.str(), ", not ", name(values_[i].tag));
    }
  }
  Value* data() { return values_.data(); }

 private:
  ValueReader reader_;
  std::vector<Value> values_;
};

void check_index_of(int32_t i, int32_t n, const char* what) {
  check_index(i >= 0 && i < n, "expected the index of ", what, ", 0 to ", n - 1, "; got ", i);
}

Name name_of(const char* name, const char* function) {
  return Name::at_run_time(given(name, function, "a name"));
}

Tensor result_from(facula_tensor t) { return t ? Tensor::share(impl(t)) : Tensor(); }

}  // namespace
}  // namespace facula::c_api

using namespace facula;
using namespace facula::c_api;

// --- calling

facula_status facula_operator_find(const char* name, facula_operator* out) {
  return guarded([&] {
    *given(out, "facula_operator_find", "an out argument") =
        handle(operator_named(name, "facula_operator_find"));
  });
}

int32_t facula_operator_argument_count(facula_operator op) { return op_of(op).info().args; }
int32_t facula_operator_result_count(facula_operator op) { return op_of(op).info().results; }
int32_t facula_operator_argument(facula_operator op, const char* name) {
  return name ? op_of(op).info().schema.index_of(name) : -1;
}

facula_status facula_operator_call(facula_operator op, const facula_value* arguments,
                                   size_t argument_count, facula_value* results,
                                   size_t result_count) {
  return guarded([&] {
    const Operator& called = op_of(given(op, "facula_operator_call", "an operator"));
    check_type(results || result_count == 0, "facula_operator_call(): expected room for ",
               result_count, " results; got a null pointer");
    Arguments args(called, arguments, argument_count);
    Results<Meta::most_results> computed;
    call(called, args.data(), computed.slots);
    const size_t n = called.info().results;
    for (size_t i = 0; i < result_count; ++i)
      results[i] = i < n ? take_result(computed.slots[i]) : facula_value{};
  });
}

// --- kernels

facula_operator facula_call_operator(facula_call call) { return handle(*call->call.op); }
int32_t facula_call_argument_count(facula_call call) { return call->call.info->args; }
int32_t facula_call_result_count(facula_call call) { return call->call.info->results; }

facula_status facula_call_argument(facula_call call, int32_t i, facula_value* out) {
  return guarded([&] {
    check_index_of(i, call->call.info->args, "an argument");
    *given(out, "facula_call_argument", "an out argument") = call->writer.show(call->call.args[i]);
  });
}

facula_status facula_call_result(facula_call call, int32_t i, facula_tensor* out) {
  return guarded([&] {
    check_index_of(i, call->call.info->results, "a result");
    const Value& v = call->call.results[i];
    *given(out, "facula_call_result", "an out argument") =
        v.is_tensor() ? handle(v.tensor) : nullptr;
  });
}

facula_status facula_call_set_result(facula_call call, int32_t i, const facula_value* v) {
  return guarded([&] {
    constexpr const char* name = "facula_call_set_result";
    check_index_of(i, call->call.info->results, "a result");
    ValueReader reader;
    const Value read = reader.read(*given(v, name, "a value"));
    const SchemaType& type = call->call.info->schema.results[static_cast<size_t>(i)].type;
    check_type(read.is_none() || fits(type, false, read), *call->call.op,
               "(): the kernel's result ", i, " must be ", type.str(), ", not ",
               facula::name(read.tag));
    set_result_copy(call->call.results[i], read);
  });
}

int32_t facula_call_compute_dtype(facula_call call) {
  const OpCall& c = call->call;
  if (c.compute != DType::Undefined) return static_cast<int32_t>(c.compute);
  const bool filled = c.info->results > 0 && c.results[0].is_tensor();
  return filled ? static_cast<int32_t>(c.results[0].tensor->dtype) : -1;
}

// --- shape rules

facula_status facula_meta_argument(facula_meta meta, int32_t i, facula_value* out) {
  return guarded([&] {
    check_index_of(i, meta->meta.call.info->args, "an argument");
    *given(out, "facula_meta_argument", "an out argument") = meta->writer.show(meta->meta.arg(i));
  });
}

facula_status facula_meta_set_result(facula_meta meta, int32_t i, int32_t ndim,
                                     const int64_t* sizes, const int64_t* strides, int32_t dtype) {
  return guarded([&] {
    constexpr const char* name = "facula_meta_set_result";
    check_index_of(i, meta->meta.call.info->results, "a result");
    const IntSpan n = sizes_from(ndim, sizes, name);
    const DType type = dtype_from(dtype, name);
    checked_numel(n);
    if (strides)
      meta->meta.result(i, n, type, sizes_from(ndim, strides, name));
    else
      meta->meta.result(i, n, type);
  });
}

facula_status facula_meta_set_device(facula_meta meta, facula_device device) {
  return guarded([&] {
    meta->meta.device = device_from(device, "facula_meta_set_device");
    meta->meta.has_device = true;
  });
}

// --- derivatives

facula_status facula_backward_grad(facula_backward b, int32_t i, facula_tensor* out) {
  return guarded([&] {
    check_index_of(i, b->backward.node().op().info().results, "a result");
    *given(out, "facula_backward_grad", "an out argument") = c_api::handle(b->backward.grad(i));
  });
}

facula_status facula_backward_saved(facula_backward b, const char* name, facula_tensor* out) {
  return guarded([&] {
    given(out, "facula_backward_saved", "an out argument");
    *out = handed_over(b->backward[name_of(name, "facula_backward_saved")]);
  });
}

facula_status facula_backward_argument(facula_backward b, const char* name, facula_value* out) {
  return guarded([&] {
    const Value& v = b->backward.value(name_of(name, "facula_backward_argument"));
    *given(out, "facula_backward_argument", "an out argument") = b->writer.show(v);
  });
}

facula_status facula_backward_sizes(facula_backward b, const char* name, int32_t* ndim,
                                    const int64_t** sizes) {
  return guarded([&] {
    const IntSpan n = b->backward.sizes(name_of(name, "facula_backward_sizes"));
    *given(ndim, "facula_backward_sizes", "an out argument") = static_cast<int32_t>(n.size());
    *given(sizes, "facula_backward_sizes", "an out argument") = n.data();
  });
}

facula_status facula_backward_needs(facula_backward b, const char* name, int32_t* out) {
  return guarded([&] {
    *given(out, "facula_backward_needs", "an out argument") =
        b->backward.needs(name_of(name, "facula_backward_needs"));
  });
}

facula_status facula_backward_set(facula_backward b, const char* name, facula_tensor t) {
  return guarded([&] {
    const OpInfo& info = b->backward.node().op().info();
    const int i = info.schema.index_of(given(name, "facula_backward_set", "a name"));
    check_value(i >= 0 && info.derivative_of[i] >= 0 && (info.tensor_args >> i & 1),
                "facula_backward_set(): '", name, "' is no tensor argument that a row of the ",
                "operator's derivatives serves");
    b->backward.set(Name::at_run_time(name), result_from(t));
  });
}

// --- forward mode

facula_status facula_forward_argument(facula_forward f, const char* name, facula_value* out) {
  return guarded([&] {
    const Value& v = f->forward.value(name_of(name, "facula_forward_argument"));
    *given(out, "facula_forward_argument", "an out argument") = f->writer.show(v);
  });
}

facula_status facula_forward_tangent(facula_forward f, const char* name, facula_tensor* out) {
  return guarded([&] {
    const int i = f->forward.arg(name_of(name, "facula_forward_tangent"));
    check_value(f->forward.info().tensor_args >> i & 1, "facula_forward_tangent(): '", name,
                "' is no tensor argument");
    *given(out, "facula_forward_tangent", "an out argument") = c_api::handle(f->forward.tangent(i));
  });
}

facula_status facula_forward_result(facula_forward f, int32_t i, facula_tensor* out) {
  return guarded([&] {
    check_index_of(i, f->forward.info().results, "a result");
    *given(out, "facula_forward_result", "an out argument") = c_api::handle(f->forward.result(i));
  });
}

facula_status facula_forward_set(facula_forward f, int32_t i, facula_tensor t) {
  return guarded([&] {
    check_index_of(i, f->forward.info().results, "a result");
    const Tensor tangent = result_from(t);
    const Tensor& result = f->forward.result(i);
    check(!tangent.defined() || same_sizes(tangent.sizes(), result.sizes()),
          "facula_forward_set(): expected a tangent of the result's sizes, ", str(result.sizes()),
          "; got ", str(tangent.defined() ? tangent.sizes() : IntSpan()));
    f->forward.set(i, tangent);
  });
}

// --- batching rules

int64_t facula_batch_size(facula_batch b) { return b->batch.size(); }

facula_status facula_batch_argument(facula_batch b, int32_t i, facula_value* out,
                                    int32_t* batched) {
  return guarded([&] {
    check_index_of(i, b->batch.info().args, "an argument");
    *given(out, "facula_batch_argument", "an out argument") = b->writer.show(b->batch.value(i));
    *given(batched, "facula_batch_argument", "an out argument") = b->batch.batched(i);
  });
}

facula_status facula_batch_set_result(facula_batch b, int32_t i, facula_tensor t) {
  return guarded([&] {
    constexpr const char* name = "facula_batch_set_result";
    check_index_of(i, b->batch.info().results, "a result");
    const Tensor made = shared(t, name);
    check(made.dim() > 0 && made.sizes()[0] == b->batch.size(), name, "(): expected the samples, ",
          b->batch.size(), ", as dimension 0; got sizes ", str(made.sizes()));
    b->batch.set_result(i, made);
  });
}
