#include "graph/fused_loop.h"

namespace facula {

std::atomic<FindLoop> find_compiled_loop{nullptr};

std::string FusedLoop::key() const {
  std::string key;
  const auto put = [&](auto number) {
    key.append(reinterpret_cast<char*>(&number), sizeof number);
  };
  for (const Memory& m : memory) {
    put(m.itemsize);
    put(m.stepping);
  }
  for (const Step& s : steps) {
    key += '\n';
    key += s.function;
    put(s.compute);
    put(s.by_number);
    put(s.itemsize);
    put(s.stores);
    for (int k = 0; k < s.inputs; ++k) {
      put(s.in[k].source);
      put(s.in[k].at);
    }
  }
  return key;
}

}  // namespace facula
