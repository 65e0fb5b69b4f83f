// What callbacks of the C interface are handed: a call, a shape rule, a derivative, a batch.
#pragma once
#include "c_api/values.h"
#include "dispatch/batch.h"
#include "dispatch/forward.h"
#include "dispatch/meta.h"

// Handles of what lives on the stack while a callback runs.
struct facula_call_s {
  facula::OpCall& call;
  facula::c_api::ValueWriter writer{};
};
struct facula_meta_s {
  facula::Meta& meta;
  facula::c_api::ValueWriter writer{};
};
struct facula_backward_s {
  facula::Backward& backward;
  facula::c_api::ValueWriter writer{};
};
struct facula_forward_s {
  facula::Forward& forward;
  facula::c_api::ValueWriter writer{};
};
struct facula_batch_s {
  facula::Batch& batch;
  facula::c_api::ValueWriter writer{};
};

namespace facula::c_api {

// A kernel of a library as one of facula's: the context is a KernelContext, which is never freed.
struct KernelContext {
  facula_kernel kernel;
  void* context;
};
void run_kernel(void* context, OpCall& c);

inline const Operator& op_of(facula_operator op) { return *reinterpret_cast<const Operator*>(op); }
inline facula_operator handle(const Operator& op) { return reinterpret_cast<facula_operator>(&op); }
// By "ns::name.overload"; KeyError where there is none.
Operator& operator_named(const char* name, const char* function);

}  // namespace facula::c_api
