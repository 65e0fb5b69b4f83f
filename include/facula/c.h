/* facula's binary interface: C alone (C11 and C++), for libraries that are compiled once and run
 * with any later build.
 *
 * The rules:
 * - Handles are opaque. A facula_tensor that a function gives through an `out` argument is a
 *   reference of the caller's, who gives it back with facula_tensor_release, unless the comment
 *   says that it is borrowed. Operators and kinds are never freed.
 * - Every struct that a library fills in begins with `size` and `version`. facula reads no more of
 *   it than `size` says; fields that are missing count as zero, which is each one's default. Zero a
 *   struct, set size and version (FACULA_INIT), then its fields.
 * - facula_value and facula_device are the two structs without a size: they never change.
 * - Functions that can fail return FACULA_OK or an error code, and leave a text for the thread
 *   (facula_error_text). Callbacks do the same: `return facula_set_error(code, text)`, or pass on
 *   what a function returned. No exception crosses this interface.
 * - Functions are added, never changed or taken out; facula_c_version says how far a build goes.
 */
#ifndef FACULA_C_H
#define FACULA_C_H
#include <stddef.h>
#include <stdint.h>

#include "facula/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FACULA_C_VERSION 1
#define FACULA_API __attribute__((visibility("default")))
/* Zeroes a struct and sets its first two fields. */
#define FACULA_INIT(pointer)                                         \
  do {                                                               \
    size_t facula_i_;                                                \
    for (facula_i_ = 0; facula_i_ < sizeof(*(pointer)); facula_i_++) \
      ((char*)(pointer))[facula_i_] = 0;                             \
    (pointer)->size = (uint32_t)sizeof(*(pointer));                  \
    (pointer)->version = FACULA_C_VERSION;                           \
  } while (0)

/* The version of the interface that the library in this process has. */
FACULA_API uint32_t facula_c_version(void);

/* --- errors */

typedef int32_t facula_status;
enum { /* which Python exception an error becomes */
       FACULA_OK = 0,
       FACULA_RUNTIME_ERROR = 1,
       FACULA_TYPE_ERROR = 2,
       FACULA_VALUE_ERROR = 3,
       FACULA_INDEX_ERROR = 4,
       FACULA_KEY_ERROR = 5,
       FACULA_NOT_IMPLEMENTED_ERROR = 6,
       FACULA_MEMORY_ERROR = 7,
       FACULA_OVERFLOW_ERROR = 8,
       FACULA_IMPORT_ERROR = 9,
       FACULA_ATTRIBUTE_ERROR = 10,
       FACULA_ASSERTION_ERROR = 11,
       FACULA_LINALG_ERROR = 12,
       FACULA_STOP_ITERATION = 13,
       FACULA_PYTHON_ERROR = 14 /* an exception that is set in Python already */
};
/* The text of this thread's last error; valid until its next one. Never null. */
FACULA_API const char* facula_error_text(void);
/* Sets this thread's error and returns `code`, for callbacks that fail. */
FACULA_API facula_status facula_set_error(facula_status code, const char* text);

/* --- numbers */

enum { /* dtypes, numbered as PyTorch's */
       FACULA_UINT8 = 0,
       FACULA_INT8 = 1,
       FACULA_INT16 = 2,
       FACULA_INT32 = 3,
       FACULA_INT64 = 4,
       FACULA_FLOAT16 = 5,
       FACULA_FLOAT32 = 6,
       FACULA_FLOAT64 = 7,
       FACULA_COMPLEX32 = 8,
       FACULA_COMPLEX64 = 9,
       FACULA_COMPLEX128 = 10,
       FACULA_BOOL = 11,
       FACULA_BFLOAT16 = 15,
       FACULA_FLOAT8_E5M2 = 23,
       FACULA_FLOAT8_E4M3FN = 24,
       FACULA_FLOAT8_E5M2FNUZ = 25,
       FACULA_FLOAT8_E4M3FNUZ = 26,
       FACULA_UINT16 = 27,
       FACULA_UINT32 = 28,
       FACULA_UINT64 = 29,
       FACULA_FLOAT8_E8M0FNU = 44,
       FACULA_FLOAT4_E2M1FN_X2 = 45,
       FACULA_BCOMPLEX32 = 46
};
/* Bytes of an element; 0 for a number that is no dtype. */
FACULA_API size_t facula_dtype_size(int32_t dtype);
/* "float32"; null for a number that is no dtype. */
FACULA_API const char* facula_dtype_name(int32_t dtype);

enum { FACULA_CPU = 0, FACULA_CUDA = 1, FACULA_META = 14, FACULA_ANY_DEVICE = -1 };
typedef struct facula_device {
  int32_t type;  /* one of the above, or what facula_register_device gave */
  int32_t index; /* -1: the current one of its type */
} facula_device;
/* "cpu", "cuda:1", or a registered type's name. */
FACULA_API facula_status facula_device_parse(const char* text, facula_device* out);

/* --- tensors */

typedef struct facula_tensor_s* facula_tensor;
typedef const struct facula_kind_s* facula_kind; /* of tensors with a layout of their own */

/* Uninitialised memory, contiguous. */
FACULA_API facula_status facula_tensor_empty(int32_t ndim, const int64_t* sizes, int32_t dtype,
                                             facula_device device, facula_tensor* out);
FACULA_API facula_status facula_tensor_empty_strided(int32_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int32_t dtype,
                                                     facula_device device, facula_tensor* out);
/* A tensor over memory of the caller's; strides are in elements, null for contiguous ones. The
 * deleter (null: none) runs when nothing refers to the memory any more, or not at all on failure.
 */
FACULA_API facula_status facula_tensor_from_blob(void* data, int32_t ndim, const int64_t* sizes,
                                                 const int64_t* strides, int32_t dtype,
                                                 facula_device device,
                                                 void (*deleter)(void* context), void* context,
                                                 facula_tensor* out);
FACULA_API facula_tensor facula_tensor_retain(facula_tensor t); /* returns t; null stays null */
FACULA_API void facula_tensor_release(facula_tensor t);         /* null is fine */

FACULA_API int32_t facula_tensor_ndim(facula_tensor t);
FACULA_API int64_t facula_tensor_numel(facula_tensor t);
/* Borrowed, valid until the tensor's geometry is changed in place. */
FACULA_API const int64_t* facula_tensor_sizes(facula_tensor t);
FACULA_API facula_status facula_tensor_strides(facula_tensor t, const int64_t** out);
FACULA_API int64_t facula_tensor_storage_offset(facula_tensor t);
FACULA_API int32_t facula_tensor_dtype(facula_tensor t);
FACULA_API facula_device facula_tensor_device(facula_tensor t);
FACULA_API int32_t facula_tensor_is_contiguous(facula_tensor t);
FACULA_API int32_t facula_tensor_requires_grad(facula_tensor t);
FACULA_API uint32_t facula_tensor_version(facula_tensor t); /* counts changes in place */
/* The first element. RuntimeError where there is no memory (meta, layouts without a storage). */
FACULA_API facula_status facula_tensor_data(facula_tensor t, void** out);

/* --- values: arguments and results of operators */

enum {
  FACULA_NONE = 0,
  FACULA_TENSOR = 1,
  FACULA_INT = 2,
  FACULA_FLOAT = 3,
  FACULA_BOOLEAN = 4,
  FACULA_COMPLEX = 5,
  FACULA_STRING = 6,
  FACULA_DTYPE = 7,
  FACULA_LAYOUT = 8,
  FACULA_MEMORY_FORMAT = 9,
  FACULA_DEVICE = 10,
  FACULA_GENERATOR = 11,
  FACULA_STORAGE = 12,
  FACULA_INT_LIST = 13,
  FACULA_FLOAT_LIST = 14,
  FACULA_BOOL_LIST = 15,
  FACULA_TENSOR_LIST = 16,
  FACULA_VALUE_LIST = 17,
  FACULA_OBJECT = 18,
  FACULA_TUPLE = 19,   /* values */
  FACULA_DICT = 20,    /* keys and values in turn; the length counts both */
  FACULA_DEFAULT = 255 /* of an argument: what the schema says */
};
typedef struct facula_value {
  uint32_t tag;
  uint32_t length; /* of lists and strings */
  union {
    int64_t i; /* also dtype, layout and memory format, by number; 0 or 1 for a boolean */
    double d;
    facula_tensor tensor;
    const double* pair; /* real and imaginary part */
    const char* chars;
    facula_device device;
    const int64_t* ints;
    const double* doubles;
    const uint8_t* bools;
    const facula_tensor* tensors; /* null ones stand for None */
    const struct facula_value* values;
    void* object; /* generators, storages and objects: opaque, to be passed on */
  } as;
} facula_value;
/* Lets go of what a result of facula_operator_call owns, and makes it FACULA_NONE. */
FACULA_API void facula_value_release(facula_value* v);

/* --- calling operators */

typedef const struct facula_operator_s* facula_operator;
/* "aten::add.Tensor"; without "::" in aten. Look handles up once and keep them. KeyError where
 * there is no such operator. */
FACULA_API facula_status facula_operator_find(const char* name, facula_operator* out);
FACULA_API int32_t facula_operator_argument_count(facula_operator op);
FACULA_API int32_t facula_operator_result_count(facula_operator op);
/* The index of the argument, or -1. */
FACULA_API int32_t facula_operator_argument(facula_operator op, const char* name);
/* Calls from the top, through autograd and all other layers. Arguments are borrowed; those that are
 * left out at the end, or have the tag FACULA_DEFAULT, get the schema's default (TypeError where
 * there is none). Results are the caller's: release each. Fewer slots than there are results drop
 * the rest. */
FACULA_API facula_status facula_operator_call(facula_operator op, const facula_value* arguments,
                                              size_t argument_count, facula_value* results,
                                              size_t result_count);

/* --- kernels */

typedef struct facula_call_s* facula_call; /* valid while the kernel runs */
typedef facula_status (*facula_kernel)(void* context, facula_call call);

FACULA_API facula_operator facula_call_operator(facula_call call);
FACULA_API int32_t facula_call_argument_count(facula_call call);
FACULA_API int32_t facula_call_result_count(facula_call call);
/* Borrowed while the kernel runs. IndexError out of range. */
FACULA_API facula_status facula_call_argument(facula_call call, int32_t i, facula_value* out);
/* Of an operator with a shape rule: the tensor that the kernel fills; borrowed. Null where the
 * shape rule stated none. */
FACULA_API facula_status facula_call_result(facula_call call, int32_t i, facula_tensor* out);
/* Of an operator with a shape rule: the dtype to compute in, which the rule states where it is not
 * the result's (comparisons give booleans); else the first result's, or -1 where there is none. */
FACULA_API int32_t facula_call_compute_dtype(facula_call call);
/* Of one without: sets a result; the value is copied, its tensors are counted. */
FACULA_API facula_status facula_call_set_result(facula_call call, int32_t i, const facula_value* v);

/* --- shape rules */

typedef struct facula_meta_s* facula_meta;
typedef facula_status (*facula_meta_rule)(void* context, facula_meta meta);

FACULA_API facula_status facula_meta_argument(facula_meta meta, int32_t i, facula_value* out);
/* States result i; null strides: contiguous. */
FACULA_API facula_status facula_meta_set_result(facula_meta meta, int32_t i, int32_t ndim,
                                                const int64_t* sizes, const int64_t* strides,
                                                int32_t dtype);
/* Where results are on another device than the arguments. */
FACULA_API facula_status facula_meta_set_device(facula_meta meta, facula_device device);

/* --- derivatives */

typedef struct facula_backward_s* facula_backward;
typedef facula_status (*facula_backward_rule)(void* context, facula_backward b);

/* The gradient of result i, borrowed; null where none came (of several results alone). */
FACULA_API facula_status facula_backward_grad(facula_backward b, int32_t i, facula_tensor* out);
/* An argument or result that the row saved, by name; null where the call had None. */
FACULA_API facula_status facula_backward_saved(facula_backward b, const char* name,
                                               facula_tensor* out);
/* An argument that is no tensor, by name; borrowed. */
FACULA_API facula_status facula_backward_argument(facula_backward b, const char* name,
                                                  facula_value* out);
/* Sizes of a tensor argument, whether or not it was saved; borrowed. */
FACULA_API facula_status facula_backward_sizes(facula_backward b, const char* name, int32_t* ndim,
                                               const int64_t** sizes);
/* 1 where the gradient of this argument is wanted. */
FACULA_API facula_status facula_backward_needs(facula_backward b, const char* name, int32_t* out);
/* States the gradient of an argument; null is zero. The tensor is counted. */
FACULA_API facula_status facula_backward_set(facula_backward b, const char* name, facula_tensor t);

/* One row of an operator's table of derivatives. */
typedef struct facula_derivative {
  uint32_t size;
  uint32_t version;
  const char* inputs; /* whose gradients the rule states: "x" or "x,y" */
  const char* saves;  /* arguments and results that it reads: "x,result" */
  facula_backward_rule rule;
} facula_derivative;

/* --- forward mode */

typedef struct facula_forward_s* facula_forward; /* valid while the rule runs */
typedef facula_status (*facula_forward_rule)(void* context, facula_forward f);

/* An argument as it was before the call, by name; borrowed. */
FACULA_API facula_status facula_forward_argument(facula_forward f, const char* name,
                                                 facula_value* out);
/* The tangent of a tensor argument, borrowed; null where it has none, which means zero. */
FACULA_API facula_status facula_forward_tangent(facula_forward f, const char* name,
                                                facula_tensor* out);
/* Result i of the call, borrowed; null where it is no tensor. */
FACULA_API facula_status facula_forward_result(facula_forward f, int32_t i, facula_tensor* out);
/* States the tangent of result i, of the result's sizes; null is zero. The tensor is counted. */
FACULA_API facula_status facula_forward_set(facula_forward f, int32_t i, facula_tensor t);

/* --- batching rules */

typedef struct facula_batch_s* facula_batch;
typedef facula_status (*facula_batch_rule)(void* context, facula_batch b);

FACULA_API int64_t facula_batch_size(facula_batch b);
/* The argument one level down, borrowed; where *batched is 1, samples are its dimension 0. */
FACULA_API facula_status facula_batch_argument(facula_batch b, int32_t i, facula_value* out,
                                               int32_t* batched);
/* A result whose dimension 0 is the samples. The tensor is counted. */
FACULA_API facula_status facula_batch_set_result(facula_batch b, int32_t i, facula_tensor t);

/* Rules that facula has for operators of a kind: facula_operator_definition.batch_family. */
enum {
  FACULA_BATCH_NONE = 0,
  FACULA_BATCH_POINTWISE = 1,     /* elementwise with broadcasting */
  FACULA_BATCH_DIMS = 2,          /* of one tensor; `dims` name dimensions of it. Other batched
                                   * tensors have its rank. */
  FACULA_BATCH_DIMS_OF_SELF = 3,  /* the same, where other tensors have shapes of their own */
  FACULA_BATCH_REDUCTION = 4,     /* as 2; none given means all dimensions */
  FACULA_BATCH_LEADING = 5,       /* of one tensor, whose leading dimensions are treated alike */
  FACULA_BATCH_PERMUTATION = 6,   /* of one tensor; `dims` is an order of its dimensions */
  FACULA_BATCH_NEW_DIM = 7,       /* of one tensor; `dims` is a place in the result */
  FACULA_BATCH_SIZES = 8,         /* of one tensor; `sizes` lists the result's sizes, strides */
  FACULA_BATCH_LIST_DIMS = 9,     /* of a list of tensors, joined along `dims` */
  FACULA_BATCH_LIST_NEW_DIM = 10, /* of a list of tensors, joined along a new dimension */
  FACULA_BATCH_VIEW = 11,         /* a view, by the geometry that it gives one sample */
  FACULA_BATCH_SEQUENCES = 12,    /* [N, C, L] or [C, L]: the batch joins N */
  FACULA_BATCH_IMAGES = 13,       /* [N, C, H, W] or [C, H, W] */
  FACULA_BATCH_VOLUMES = 14       /* [N, C, D, H, W] or [C, D, H, W] */
};

/* --- registering operators */

enum { /* facula_operator_definition.composite */
       FACULA_COMPOSITE_NO = 0,
       FACULA_COMPOSITE_IMPLICIT = 1, /* `any` calls other operators, which have the derivatives */
       FACULA_COMPOSITE_EXPLICIT = 2  /* `any` calls other operators; derivatives of its own */
};
enum { /* facula_operator_definition.flags */
       FACULA_RANDOM = 1,
       FACULA_NONDETERMINISTIC = 8,
       FACULA_LINEAR = 16,
       FACULA_POINTWISE = 256
};
typedef struct facula_operator_definition {
  uint32_t size;
  uint32_t version;
  const char* schema; /* "mine::scale(Tensor x, Scalar k=1) -> Tensor" */
  const char* doc;
  void* context; /* of all callbacks */
  /* With a shape rule the library makes, casts, resizes and checks the results, and kernels fill
   * them; without one kernels set their results, and there is no meta device. */
  facula_meta_rule meta;
  facula_kernel cpu;
  facula_kernel any; /* for every device: calls other operators, or makes views */
  uint32_t composite;
  uint32_t flags;
  const facula_derivative* derivatives;
  size_t derivative_count;
  const char* not_differentiable; /* names of results and arguments: "indices" */
  const char* numbers;            /* Tensor arguments that also take a Python number */
  facula_batch_rule batch;        /* or, for elementwise ones, pointwise_batch = 1 */
  int32_t pointwise_batch;
  int32_t batch_family; /* or one of facula's rules */
  /* Of such a rule, by name: the int arguments that name dimensions ("dim0,dim1"; null: "dim"), the
   * one that lists sizes and the one that lists strides (null: "size"), and the tensors that have a
   * dimension of samples always. */
  const char* dims;
  const char* sizes;
  const char* always_batched;
  facula_forward_rule jvp; /* without one, forward mode uses the rows of derivatives */
} facula_operator_definition;
/* RuntimeError where the schema is malformed or the name taken. `out` may be null. */
FACULA_API facula_status facula_operator_register(const facula_operator_definition* definition,
                                                  facula_operator* out);

typedef struct facula_kernel_registration {
  uint32_t size;
  uint32_t version;
  const char* operator_name;
  facula_kernel kernel;
  void* context;
  /* For strided tensors on a type of device: */
  int32_t device_type;
  /* The library makes the results by the operator's shape rule and the kernel fills them, for the
   * in-place and out= variants too. */
  int32_t structured;
  /* For tensors of a kind (null: strided ones); device_type may be FACULA_ANY_DEVICE then. The
   * kernel sets its results. */
  facula_kind kind;
} facula_kernel_registration;
/* A kernel for an operator that is there, facula's own included. The later one wins. */
FACULA_API facula_status facula_kernel_register(const facula_kernel_registration* registration);

/* --- registering devices: the table is described in facula/device.h */

/* Gives the number of the new type. The table is copied as far as its size says. RuntimeError where
 * the name is taken or the table lacks what every device must have. */
FACULA_API facula_status facula_register_device(const facula_device_table* table, int32_t* type);
/* The stream that this thread's work for a device is to be given to; null is the default one. */
FACULA_API facula_status facula_current_stream(facula_device device, void** stream);
/* The tensor's memory is used on this stream of its device too: after its release it waits for what
 * the stream has been given by then. */
FACULA_API facula_status facula_record_stream(facula_tensor t, void* stream);
/* For every operator that has no kernel on this type of device; null takes it out. */
FACULA_API facula_status facula_device_fallback(int32_t device_type, facula_kernel kernel,
                                                void* context);

/* --- registering kinds of tensors: layouts */

typedef struct facula_text_s* facula_text; /* collects text */
FACULA_API void facula_text_append(facula_text to, const char* chars, size_t length);
typedef struct facula_list_s* facula_list;                           /* collects tensors */
FACULA_API void facula_list_append(facula_list to, facula_tensor t); /* counted; null is None */

typedef struct facula_kind_definition {
  uint32_t size;
  uint32_t version;
  const char* name;         /* unique; pickles name it: "mine.DiagonalTensor" */
  const char* layout;       /* "sparse_coo", or one's own: facula.library.layout(name) finds it */
  const char* impl_name;    /* in errors: "Cannot access storage of DiagonalTensorImpl" */
  const char* dispatch_key; /* in errors: "Diagonal" gives "DiagonalCPU" */
  int32_t quantized, nested;
  void* context; /* of all callbacks */
  /* Lets go of a tensor's payload; called when the last header over it dies. */
  void (*destroy)(void* context, void* payload);
  /* Optional: geometry as users ask for it, into arrays of ndim. By default sizes are those that
   * the tensor was made with, and asking for strides is an error. */
  facula_status (*sizes)(void* context, facula_tensor t, int64_t* out);
  facula_status (*strides)(void* context, facula_tensor t, int64_t* out);
  facula_status (*numel)(void* context, facula_tensor t, int64_t* out);
  /* Optional: what is printed behind "tensor(". */
  facula_status (*text)(void* context, facula_tensor t, facula_text out);
  /* Optional, both or none: the tensors that say everything about the values, for pickles, copies
   * and printing, and the tensor made of them. What comes may be of an untrusted file: check it. */
  facula_status (*parts)(void* context, facula_tensor t, facula_list out);
  facula_status (*from_parts)(void* context, int32_t ndim, const int64_t* sizes, int32_t dtype,
                              facula_device device, const facula_tensor* parts, size_t part_count,
                              facula_tensor* out);
} facula_kind_definition;
FACULA_API facula_status facula_kind_register(const facula_kind_definition* definition,
                                              facula_kind* out);
/* A tensor of a kind: no storage, and the payload, which it takes over (on failure too). */
FACULA_API facula_status facula_tensor_of_kind(facula_kind kind, void* payload, int32_t ndim,
                                               const int64_t* sizes, int32_t dtype,
                                               facula_device device, facula_tensor* out);
/* Null for strided tensors. */
FACULA_API facula_kind facula_tensor_kind(facula_tensor t);
/* The payload, borrowed; RuntimeError where the tensor is of another kind. */
FACULA_API facula_status facula_tensor_payload(facula_tensor t, facula_kind kind, void** out);
/* For every operator that has no kernel for the kind; null takes it out. */
FACULA_API facula_status facula_kind_fallback(facula_kind kind, facula_kernel kernel,
                                              void* context);

/* --- threads */

/* Calls body(context, begin, end) for chunks of `grain` items of [0, n), on several threads when
 * that is allowed. The first error in the order of chunks is the result. */
FACULA_API facula_status facula_parallel_for(int64_t n, int64_t grain,
                                             facula_status (*body)(void* context, int64_t begin,
                                                                   int64_t end),
                                             void* context);

#ifdef __cplusplus
}
#endif
#endif
