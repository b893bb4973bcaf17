// SPDX-License-Identifier: Apache-2.0
#include "tensor/block_format.h"

#include <array>

#include "base/check.h"

namespace hearth {
namespace {

// Far above the enum, so that it can grow.
constexpr int kFirstAdded = 128;

struct Added {
  std::array<const BlockFormat*, kMaxAddedFormats> formats{};
  int count = 0;
};
Added& All() {
  static Added added;
  return added;
}

}  // namespace

DType AddBlockFormat(const BlockFormat& format) {
  Added& all = All();
  HEARTH_CHECK(all.count < kMaxAddedFormats);
  HEARTH_CHECK(format.shape.elems > 0 && format.shape.bytes > 0 && format.decode != nullptr);
  all.formats[static_cast<size_t>(all.count)] = &format;
  return static_cast<DType>(kFirstAdded + all.count++);
}

const BlockFormat* AddedFormat(DType dtype) {
  const int index = static_cast<int>(dtype) - kFirstAdded;
  const Added& all = All();
  return index >= 0 && index < all.count ? all.formats[static_cast<size_t>(index)] : nullptr;
}

}  // namespace hearth
