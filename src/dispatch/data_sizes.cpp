#include "dispatch/data_sizes.h"

#include "core/error.h"

namespace facula {

thread_local constinit DataSizes* data_sizes __attribute__((tls_model("initial-exec"))) = nullptr;

void refuse_without_data(std::string_view op) {
  throw Error(ErrorKind::NotImplemented, op,
              "(): the shape of the result depends on data, which tensors on the meta device lack");
}

int64_t size_from_data(std::string_view op, int64_t limit) {
  if (!data_sizes) refuse_without_data(op);
  return data_sizes->size(limit);
}

}  // namespace facula
