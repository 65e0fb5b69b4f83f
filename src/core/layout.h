// Layouts: how the elements of a tensor are laid out, as users name it.
#pragma once
#include <cstdint>
#include <string_view>

namespace facula {

// Numbers are PyTorch's; layouts that libraries register are numbered from FirstRegistered on.
enum class Layout : int8_t {
  Strided = 0,
  Sparse = 1,
  SparseCsr = 2,
  Mkldnn = 3,
  SparseCsc = 4,
  SparseBsr = 5,
  SparseBsc = 6,
  Jagged = 7,
  FirstRegistered = 16
};
inline constexpr int most_layouts = 48;

// "sparse_coo"; null for a number that no layout has. The text lives as long as the process.
const char* layout_name(Layout layout);
// The layout of this name, or Strided where there is none.
Layout find_layout(std::string_view name);
// The layout of this name, registered if it is new. RuntimeError when there are too many.
Layout register_layout(std::string_view name);

}  // namespace facula
