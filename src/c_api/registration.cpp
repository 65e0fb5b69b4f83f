// Operators, kernels and devices that a library registers.
#include <array>
#include <string>
#include <utility>

#include "autograd/node.h"
#include "c_api/calls.h"
#include "core/device_allocator.h"
#include "core/device_table.h"
#include "dispatch/batch_families.h"
#include "dispatch/layout.h"

namespace facula::c_api {
namespace {

constexpr size_t most_rows = std::size(OpRecord{}.derivatives);

// What a library said of an operator, for the trampolines below; never freed.
struct Definition {
  facula_operator_definition given;
  std::array<facula_derivative, most_rows> rows{};
  KernelContext cpu, any;
};

const Definition& definition_of(const OpRecord& r) {
  return *static_cast<const Definition*>(r.library_data);
}

// --- facula's rules that call a library's

void run_meta(Meta& m) {
  const Definition& d = definition_of(*m.call.op->record);
  facula_meta_s meta{m};
  run_callback(d.given.meta, d.given.context, &meta);
}

template <size_t Row>
void run_row(Backward& b) {
  const Definition& d = definition_of(*b.node().op().record);
  facula_backward_s backward{b};
  run_callback(d.rows[Row].rule, d.given.context, &backward);
}
template <size_t... Row>
constexpr std::array<FusedDerivativeRule, most_rows> row_rules(std::index_sequence<Row...>) {
  return {&run_row<Row>...};
}
constexpr auto rules_by_row = row_rules(std::make_index_sequence<most_rows>());

void run_jvp(Forward& f) {
  const Definition& d = definition_of(*f.op().record);
  facula_forward_s forward{f};
  run_callback(d.given.jvp, d.given.context, &forward);
}

void run_batch(Batch& b) {
  const Definition& d = definition_of(*b.op().record);
  facula_batch_s batch{b};
  run_callback(d.given.batch, d.given.context, &batch);
}

// --- a definition as a record

std::string_view kept(std::string_view text) { return *new std::string(text); }

// "x,y" as names; the text lives for good.
Names names_from(const char* list, const char* what) {
  Names found;
  int n = 0;
  std::string_view rest = list ? kept(list) : std::string_view();
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    check_value(!name.empty() && name.find(' ') == name.npos, "facula_operator_register(): ", what,
                " must be names with commas between them; got '", list, "'");
    check_value(n < Names::most, "facula_operator_register(): at most ", Names::most, " ", what,
                " are supported; got '", list, "'");
    found.list[n++] = name;
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return found;
}

void add_rows(Definition& d, OpRecord& r) {
  const facula_operator_definition& g = d.given;
  check_value(g.derivative_count <= most_rows, "facula_operator_register(): at most ", most_rows,
              " rows of derivatives are supported; got ", g.derivative_count);
  check_type(g.derivatives || g.derivative_count == 0,
             "facula_operator_register(): expected rows of derivatives; got a null pointer");
  // Rows of another version of the interface may be longer or shorter than ours.
  const auto* at = reinterpret_cast<const char*>(g.derivatives);
  for (size_t i = 0; i < g.derivative_count; ++i) {
    const auto* row = reinterpret_cast<const facula_derivative*>(at);
    d.rows[i] = read_struct(row, "facula_operator_register");
    given(d.rows[i].rule, "facula_operator_register", "a rule in each row of derivatives");
    r.derivatives[i] = vjp(names_from(d.rows[i].inputs, "inputs"), rules_by_row[i],
                           names_from(d.rows[i].saves, "saves"));
    check_value(!r.derivatives[i].inputs.empty(),
                "facula_operator_register(): a row of derivatives names no inputs");
    at += row->size;
  }
}

// --- batching rules of facula's

constexpr BatchRule families[] = {
    nullptr,           &batch::pointwise, &batch::dims,         &batch::dims_of_self,
    &batch::reduction, &batch::leading,   &batch::permutation,  &batch::new_dim,
    &batch::sizes,     &batch::list_dims, &batch::list_new_dim, &batch::view_geometry,
    &batch::fold1d,    &batch::fold2d,    &batch::fold3d};
static_assert(std::size(families) == FACULA_BATCH_VOLUMES + 1);

// What the rule of a family reads has to be there.
void check_family(int32_t family, const OpRecord& r, const Schema& s) {
  const auto argument = [&s](std::string_view name) {
    const int i = s.index_of(name);
    return i < 0 ? nullptr : &s.args[static_cast<size_t>(i)].type;
  };
  const auto is_of = [](const SchemaType* t, TypeKind kind, bool list) {
    const bool integer = kind == TypeKind::Int && t && t->kind == TypeKind::SymInt;
    return t && (t->kind == kind || integer) && t->list == list && !t->optional;
  };
  const SchemaType* first = s.args.empty() ? nullptr : &s.args[0].type;
  const SchemaType* dim = argument(r.dims.list[0]);
  bool fits = is_of(first, TypeKind::Tensor, false);
  switch (family) {
    case FACULA_BATCH_PERMUTATION:
      fits = fits && is_of(dim, TypeKind::Int, true);
      break;
    case FACULA_BATCH_NEW_DIM:
      fits = fits && is_of(dim, TypeKind::Int, false);
      break;
    case FACULA_BATCH_SIZES:
      fits = fits && is_of(argument(r.sizes.list[0]), TypeKind::Int, true);
      break;
    case FACULA_BATCH_LIST_DIMS:
    case FACULA_BATCH_LIST_NEW_DIM:
      fits = is_of(first, TypeKind::Tensor, true) && is_of(dim, TypeKind::Int, false);
      break;
    case FACULA_BATCH_VIEW:
      fits = fits && s.results.size() == 1 && s.results[0].alias && !s.results[0].alias.write;
      break;
    case FACULA_BATCH_POINTWISE:
      fits = true;
      break;
  }
  check_value(fits, "facula_operator_register(): ", s.name, ": its arguments are not those that ",
              "the rule of batch_family ", family, " reads");
}

// The names that are given, each of an argument; by default, those of any record.
void name_arguments(Names& names, const char* list, const char* what, const Schema& s) {
  if (!list) return;
  names = names_from(list, what);
  for (std::string_view name : names.list)
    check_value(name.empty() || s.index_of(name) >= 0, "facula_operator_register(): ", what,
                " names '", name, "', which is no argument of ", s.name);
}

void set_family(const facula_operator_definition& g, OpRecord& r) {
  check_value(g.batch_family >= 0 && g.batch_family < static_cast<int>(std::size(families)),
              "facula_operator_register(): batch_family ", g.batch_family, " is unknown");
  if (g.batch_family == FACULA_BATCH_NONE) return;
  check_value(!g.batch && !g.pointwise_batch, "facula_operator_register(): expected one of batch, ",
              "pointwise_batch and batch_family; got several");
  const Schema s = parse_schema(g.schema);
  name_arguments(r.dims, g.dims, "dims", s);
  name_arguments(r.sizes, g.sizes, "sizes", s);
  name_arguments(r.always_batched, g.always_batched, "always_batched", s);
  check_family(g.batch_family, r, s);
  r.batch = families[g.batch_family];
}

OpRecord record_of(Definition& d) {
  const facula_operator_definition& g = d.given;
  constexpr uint32_t known = random | nondeterministic | linear | pointwise;
  check_value((g.flags & ~known) == 0, "facula_operator_register(): unknown flags ", g.flags);
  check_value(g.composite <= FACULA_COMPOSITE_EXPLICIT, "facula_operator_register(): composite ",
              g.composite, " is unknown");
  check_value(g.composite == FACULA_COMPOSITE_NO || g.any,
              "facula_operator_register(): a composite needs the kernel `any`");
  OpRecord r;
  r.doc = g.doc ? kept(g.doc).data() : "";
  r.flags = g.flags;
  r.composite = static_cast<Composite>(g.composite);
  r.library_data = &d;
  if (g.meta) r.meta = &run_meta;
  d.cpu = {g.cpu, g.context};
  d.any = {g.any, g.context};
  if (g.cpu) r.cpu = {{&run_kernel}, {&d.cpu}};
  if (g.any) r.any = {{&run_kernel}, {&d.any}};
  add_rows(d, r);
  r.not_differentiable = names_from(g.not_differentiable, "not_differentiable");
  r.numbers = names_from(g.numbers, "numbers");
  if (g.pointwise_batch) r.batch = &batch::pointwise;
  if (g.batch) r.batch = &run_batch;
  set_family(g, r);
  if (g.jvp) r.jvp = &run_jvp;
  return r;
}

void register_for_kind(Operator& op, const facula_kernel_registration& r, KernelContext* context) {
  const auto& kind = *reinterpret_cast<const ExtensionKind*>(r.kind);
  check_value(!r.structured, "facula_kernel_register(): kernels for a kind of tensors set their ",
              "results: structured must be 0");
  if (r.device_type != FACULA_ANY_DEVICE)
    device_from({r.device_type, -1}, "facula_kernel_register");
  put_in_layout(op, kind, static_cast<int16_t>(r.device_type), run_kernel, context);
}

}  // namespace
}  // namespace facula::c_api

using namespace facula;
using namespace facula::c_api;

facula_status facula_operator_register(const facula_operator_definition* definition,
                                       facula_operator* out) {
  return guarded([&] {
    auto d = std::make_unique<Definition>();
    d->given = read_struct(definition, "facula_operator_register");
    const char* schema = given(d->given.schema, "facula_operator_register", "a schema");
    const OpRecord r = record_of(*d);
    Operator& op = define_operator(schema, &r);
    d.release();  // the operator refers to it for good
    if (out) *out = c_api::handle(op);
  });
}

facula_status facula_kernel_register(const facula_kernel_registration* registration) {
  return guarded([&] {
    constexpr const char* name = "facula_kernel_register";
    const facula_kernel_registration r = read_struct(registration, name);
    Operator& op = operator_named(r.operator_name, name);
    auto context = std::make_unique<KernelContext>(
        KernelContext{given(r.kernel, name, "a kernel"), r.context});
    if (r.kind) {
      register_for_kind(op, r, context.get());
    } else {
      const Layer backend = backend_layer(device_from({r.device_type, -1}, name).type);
      if (r.structured)
        put_in_structured(op, backend, run_kernel, context.get());
      else
        put_in(op, backend, run_kernel, context.get());
    }
    context.release();  // calls may be under way as long as the process lives
  });
}

facula_status facula_register_device(const facula_device_table* table, int32_t* type) {
  return guarded([&] {
    given(table, "facula_register_device", "a table");
    given(type, "facula_register_device", "room for the type's number");
    *type = static_cast<int32_t>(register_device(*table));
  });
}

facula_status facula_current_stream(facula_device device, void** stream) {
  return guarded([&] {
    const Device d = with_index(device_from(device, "facula_current_stream"));
    *given(stream, "facula_current_stream", "room for the stream") =
        stream_handle(current_stream(d));
  });
}

facula_status facula_record_stream(facula_tensor t, void* stream) {
  return guarded([&] {
    const Tensor tensor = shared(t, "facula_record_stream");
    const Device d = tensor.device();
    check_value(d.is_accelerator(), "facula_record_stream(): expected a tensor of an accelerator; ",
                "got ", str(d));
    record_stream(d, tensor->storage->data(), external_stream(d, stream));
  });
}

facula_status facula_device_fallback(int32_t device_type, facula_kernel kernel, void* context) {
  return guarded([&] {
    const Device d = device_from({device_type, -1}, "facula_device_fallback");
    set_backend_fallback(backend_layer(d.type), kernel ? run_kernel : nullptr,
                         kernel ? new KernelContext{kernel, context} : nullptr);
  });
}
