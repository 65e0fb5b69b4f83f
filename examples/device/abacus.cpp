// The smallest device: its memory is the host's and its work is done at once. docs/add/device.md
// explains it, and what a device with memory and streams of its own adds.
#include <cstdlib>
#include <cstring>

#include "facula/extension.h"

namespace {

using namespace facula::ext;

// --- what every device must have

int device_count() { return 2; }

int allocate(int, size_t bytes, void** data) {
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return 0;
}

int release(int, void* data, size_t) {
  std::free(data);
  return 0;
}

int copy(int, void* to, const void* from, size_t bytes, int, void*) {
  std::memcpy(to, from, bytes);
  return 0;
}

int synchronize(int) { return 0; }

constexpr facula_device_table table{
    .size = sizeof(facula_device_table),
    .version = FACULA_DEVICE_TABLE_VERSION,
    .name = "abacus",
    .device_count = device_count,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .synchronize = synchronize,
};

// --- a kernel

float* floats(const Tensor& t) {
  require(t.dtype() == FACULA_FLOAT32, FACULA_NOT_IMPLEMENTED_ERROR,
          "abacus: expected float32; other dtypes have no kernel");
  void* data;
  check(facula_tensor_data(t.get(), &data));
  return static_cast<float*>(data);
}

// Where element i of a tensor lies: arguments and results may have any strides.
int64_t offset_of(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (size_t d = t.sizes().size(); d-- > 0; i /= t.sizes()[d])
    offset += i % t.sizes()[d] * t.strides()[d];
  return offset;
}

void neg(Call c) {
  const Tensor x = c.tensor(0), out = c.result();
  const float* from = floats(x);
  float* to = floats(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[offset_of(out, i)] = -from[offset_of(x, i)];
}

// --- registering both

void register_all() {
  int32_t type;
  check(facula_register_device(&table, &type));
  constexpr bool structured = true;
  add_kernel<neg>("aten::neg", type, structured);
}

}  // namespace

FACULA_EXTENSION(register_all)
