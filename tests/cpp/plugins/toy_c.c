/* Operators in C11 alone: toy_c::affine(x, scale, shift) with shape rule, kernel, derivatives and
 * batching rule, toy_c::echo, which gives back every kind of value, and an operator for each of
 * facula's batching rules. */
#include <stddef.h>

#include "facula/c.h"

static facula_operator mul_op;

static facula_status affine_shape(void* context, facula_meta m) {
  facula_value x;
  facula_status s = facula_meta_argument(m, 0, &x);
  (void)context;
  if (s != FACULA_OK) return s;
  if (facula_tensor_dtype(x.as.tensor) != FACULA_FLOAT64)
    return facula_set_error(FACULA_TYPE_ERROR, "affine(): expected a tensor of float64");
  return facula_meta_set_result(m, 0, facula_tensor_ndim(x.as.tensor),
                                facula_tensor_sizes(x.as.tensor), NULL, FACULA_FLOAT64);
}

struct loop {
  const double* from;
  double* to;
  double scale, shift;
};
static facula_status affine_chunk(void* context, int64_t begin, int64_t end) {
  const struct loop* l = (const struct loop*)context;
  int64_t i;
  for (i = begin; i < end; ++i) l->to[i] = l->scale * l->from[i] + l->shift;
  return FACULA_OK;
}

static facula_status affine(void* context, facula_call c) {
  facula_value x, scale, shift;
  facula_tensor out;
  struct loop l;
  void* p;
  facula_status s;
  if ((s = facula_call_argument(c, 0, &x)) != FACULA_OK) return s;
  if ((s = facula_call_argument(c, 1, &scale)) != FACULA_OK) return s;
  if ((s = facula_call_argument(c, 2, &shift)) != FACULA_OK) return s;
  if ((s = facula_call_result(c, 0, &out)) != FACULA_OK) return s;
  if (!facula_tensor_is_contiguous(x.as.tensor))
    return facula_set_error(FACULA_NOT_IMPLEMENTED_ERROR, "affine(): expected contiguous memory");
  if ((s = facula_tensor_data(x.as.tensor, &p)) != FACULA_OK) return s;
  l.from = (const double*)p;
  if ((s = facula_tensor_data(out, &p)) != FACULA_OK) return s;
  l.to = (double*)p;
  l.scale = scale.as.d;
  l.shift = shift.as.d;
  ++*(int64_t*)context;
  return facula_parallel_for(facula_tensor_numel(out), 4096, affine_chunk, &l);
}

static facula_status affine_backward(void* context, facula_backward b) {
  facula_value arguments[2], result;
  facula_status s;
  (void)context;
  arguments[0].tag = FACULA_TENSOR;
  if ((s = facula_backward_grad(b, 0, &arguments[0].as.tensor)) != FACULA_OK) return s;
  if ((s = facula_backward_argument(b, "scale", &arguments[1])) != FACULA_OK) return s;
  if ((s = facula_operator_call(mul_op, arguments, 2, &result, 1)) != FACULA_OK) return s;
  s = facula_backward_set(b, "x", result.as.tensor);
  facula_value_release(&result);
  return s;
}

static int64_t forward_rules = 0;
int64_t toy_c_forward_rules(void) { return forward_rules; }

static facula_status affine_forward(void* context, facula_forward f) {
  facula_value arguments[2], result;
  facula_tensor out;
  facula_status s;
  (void)context;
  arguments[0].tag = FACULA_TENSOR;
  if ((s = facula_forward_tangent(f, "x", &arguments[0].as.tensor)) != FACULA_OK) return s;
  if ((s = facula_forward_argument(f, "scale", &arguments[1])) != FACULA_OK) return s;
  if ((s = facula_forward_result(f, 0, &out)) != FACULA_OK) return s;
  if (facula_tensor_numel(out) != facula_tensor_numel(arguments[0].as.tensor))
    return facula_set_error(FACULA_ASSERTION_ERROR, "affine(): a tangent of another size");
  if ((s = facula_operator_call(mul_op, arguments, 2, &result, 1)) != FACULA_OK) return s;
  ++forward_rules;
  s = facula_forward_set(f, 0, result.as.tensor);
  facula_value_release(&result);
  return s;
}

/* States a tangent of sizes that the result does not have. */
static facula_status crooked_forward(void* context, facula_forward f) {
  const int64_t sizes[] = {7};
  const facula_device cpu = {FACULA_CPU, -1};
  facula_tensor t;
  facula_status s = facula_tensor_empty(1, sizes, FACULA_FLOAT64, cpu, &t);
  (void)context;
  if (s != FACULA_OK) return s;
  s = facula_forward_set(f, 0, t);
  facula_tensor_release(t);
  return s;
}

static facula_operator affine_op;

/* The samples are one more dimension of an elementwise operator. */
static facula_status affine_batch(void* context, facula_batch b) {
  facula_value arguments[3], result;
  int32_t i, batched;
  facula_status s;
  (void)context;
  for (i = 0; i < 3; ++i)
    if ((s = facula_batch_argument(b, i, &arguments[i], &batched)) != FACULA_OK) return s;
  if ((s = facula_operator_call(affine_op, arguments, 3, &result, 1)) != FACULA_OK) return s;
  s = facula_batch_set_result(b, 0, result.as.tensor);
  facula_value_release(&result);
  return s;
}

/* Calls the operator that is the context, with the arguments as they come. */
static facula_status pass_on(void* context, facula_call c) {
  facula_value arguments[4], result;
  const int32_t n = facula_call_argument_count(c);
  int32_t i;
  facula_status s;
  for (i = 0; i < n; ++i)
    if ((s = facula_call_argument(c, i, &arguments[i])) != FACULA_OK) return s;
  s = facula_operator_call((facula_operator)context, arguments, (size_t)n, &result, 1);
  if (s != FACULA_OK) return s;
  s = facula_call_set_result(c, 0, &result);
  facula_value_release(&result);
  return s;
}

static facula_status define_in_family(const char* schema, const char* target, int32_t family,
                                      const char* dims, const char* sizes) {
  facula_operator_definition d;
  facula_operator op;
  const facula_status s = facula_operator_find(target, &op);
  if (s != FACULA_OK) return s;
  FACULA_INIT(&d);
  d.schema = schema;
  d.context = (void*)op;
  d.any = pass_on;
  d.batch_family = family;
  d.dims = dims;
  d.sizes = sizes;
  return facula_operator_register(&d, NULL);
}
facula_status toy_c_define_in_family(const char* schema, int32_t family, const char* dims) {
  return define_in_family(schema, "neg", family, dims, NULL);
}

static facula_status define_families(void) {
  static const struct {
    const char *schema, *target;
    int32_t family;
    const char *dims, *sizes;
  } rows[] = {
      {"toy_c::product(Tensor x, Tensor y) -> Tensor", "mul.Tensor", FACULA_BATCH_POINTWISE, 0, 0},
      {"toy_c::running(Tensor x, int axis) -> Tensor", "cumsum", FACULA_BATCH_DIMS, "axis", 0},
      {"toy_c::swapped(Tensor x, int a, int b) -> Tensor", "transpose_copy.int", FACULA_BATCH_DIMS,
       "a,b", 0},
      {"toy_c::taken(Tensor x, int dim, Tensor at) -> Tensor", "gather", FACULA_BATCH_DIMS, 0, 0},
      {"toy_c::reversed(Tensor x, int[] axes) -> Tensor", "flip", FACULA_BATCH_DIMS_OF_SELF, "axes",
       0},
      {"toy_c::total(Tensor x, int[]? axes=None) -> Tensor", "sum.dim_IntList",
       FACULA_BATCH_REDUCTION, "axes", 0},
      {"toy_c::lower(Tensor x) -> Tensor", "tril", FACULA_BATCH_LEADING, 0, 0},
      {"toy_c::ordered(Tensor x, int[] order) -> Tensor", "permute_copy", FACULA_BATCH_PERMUTATION,
       "order", 0},
      {"toy_c::wrapped(Tensor x, int at) -> Tensor", "unsqueeze_copy", FACULA_BATCH_NEW_DIM, "at",
       0},
      {"toy_c::blank(Tensor x, int[] shape) -> Tensor", "new_zeros", FACULA_BATCH_SIZES, 0,
       "shape"},
      {"toy_c::joined(Tensor[] x, int dim=0) -> Tensor", "cat", FACULA_BATCH_LIST_DIMS, 0, 0},
      {"toy_c::piled(Tensor[] x, int at) -> Tensor", "stack", FACULA_BATCH_LIST_NEW_DIM, "at", 0},
      {"toy_c::turned(Tensor(a) x) -> Tensor(a)", "t", FACULA_BATCH_VIEW, 0, 0},
      {"toy_c::pool1(Tensor x, int[1] n) -> Tensor", "avg_pool1d", FACULA_BATCH_SEQUENCES, 0, 0},
      {"toy_c::pool2(Tensor x, int[2] n) -> Tensor", "avg_pool2d", FACULA_BATCH_IMAGES, 0, 0},
      {"toy_c::pool3(Tensor x, int[3] n) -> Tensor", "avg_pool3d", FACULA_BATCH_VOLUMES, 0, 0}};
  facula_status s = FACULA_OK;
  size_t i;
  for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && s == FACULA_OK; ++i)
    s = define_in_family(rows[i].schema, rows[i].target, rows[i].family, rows[i].dims,
                         rows[i].sizes);
  return s;
}

/* Any value, as it came. */
static facula_status echo(void* context, facula_call c) {
  facula_value v;
  const facula_status s = facula_call_argument(c, 0, &v);
  (void)context;
  return s != FACULA_OK ? s : facula_call_set_result(c, 0, &v);
}

/* Fails in every way that a callback can. */
static facula_status fail(void* context, facula_call c) {
  facula_value how;
  facula_tensor t;
  const int64_t sizes[] = {-1};
  const facula_device cpu = {FACULA_CPU, -1};
  const facula_status s = facula_call_argument(c, 0, &how);
  (void)context;
  if (s != FACULA_OK) return s;
  switch (how.as.i) {
    case 0: /* a code without a text */
      return FACULA_INDEX_ERROR;
    case 1:
      return facula_set_error(FACULA_KEY_ERROR, "a key of the library's");
    case 2: /* facula's own, passed on */
      return facula_tensor_empty(1, sizes, FACULA_FLOAT32, cpu, &t);
    case 3:
      return facula_call_argument(c, 7, &how);
    case 4: /* no such code */
      return facula_set_error(99, "an unknown code");
    case 5: /* a result of another type */
      return facula_call_set_result(c, 0, &how);
    case 6:
      how.tag = 77;
      return facula_call_set_result(c, 0, &how);
    default:
      return FACULA_OK; /* and no result */
  }
}

static int64_t affine_calls = 0;
int64_t toy_c_calls(void) { return affine_calls; }

/* `size` is how much of the definition a library of another version would have known. */
facula_status toy_c_define(const char* schema, uint32_t size) {
  facula_operator_definition d;
  FACULA_INIT(&d);
  d.size = size;
  d.schema = schema;
  d.context = &affine_calls;
  d.meta = affine_shape;
  d.cpu = affine;
  return facula_operator_register(&d, NULL);
}

facula_status facula_extension_start(void) {
  static const char* const kinds[] = {"Tensor x", "int x",    "float x",   "bool x",
                                      "Scalar x", "str x",    "int[] x",   "float[] x",
                                      "bool[] x", "Tensor[] x", "ScalarType x", "Device x"};
  static const char* const results[] = {"Tensor", "int",     "float",    "bool",
                                        "Scalar", "str",     "int[]",    "float[]",
                                        "bool[]", "Tensor[]", "ScalarType", "Device"};
  facula_operator_definition d;
  facula_derivative row;
  facula_status s;
  size_t i;
  if ((s = facula_operator_find("mul.Tensor", &mul_op)) != FACULA_OK) return s;
  FACULA_INIT(&row);
  row.inputs = "x";
  row.rule = affine_backward;
  FACULA_INIT(&d);
  d.schema = "toy_c::affine(Tensor x, float scale, float shift=0.) -> Tensor";
  d.doc = "scale * x + shift.";
  d.context = &affine_calls;
  d.meta = affine_shape;
  d.cpu = affine;
  d.derivatives = &row;
  d.derivative_count = 1;
  d.batch = affine_batch;
  d.jvp = affine_forward;
  if ((s = facula_operator_register(&d, &affine_op)) != FACULA_OK) return s;
  d.schema = "toy_c::crooked(Tensor x, float scale, float shift=0.) -> Tensor";
  d.batch = NULL;
  d.jvp = crooked_forward;
  if ((s = facula_operator_register(&d, NULL)) != FACULA_OK) return s;
  if ((s = define_families()) != FACULA_OK) return s;
  for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    char schema[128] = "toy_c::echo.";
    char* to = schema + 12;
    const char* from;
    *to++ = (char)('a' + (int)i);
    *to++ = '(';
    for (from = kinds[i]; *from; ++from) *to++ = *from;
    for (from = ") -> "; *from; ++from) *to++ = *from;
    for (from = results[i]; *from; ++from) *to++ = *from;
    FACULA_INIT(&d);
    d.schema = schema;
    d.any = echo;
    if ((s = facula_operator_register(&d, NULL)) != FACULA_OK) return s;
  }
  FACULA_INIT(&d);
  d.schema = "toy_c::fail(int how) -> Tensor";
  d.any = fail;
  return facula_operator_register(&d, NULL);
}
