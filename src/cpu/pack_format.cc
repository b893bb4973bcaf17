// SPDX-License-Identifier: Apache-2.0
#include "cpu/pack_format.h"

#include <cstddef>

namespace hearth {

const PackFormat* FormatOf(PackKind kind) {
  static const PackFormat* const kFormats[kNumPackKinds] = {
      &kMxfp4Format, &kQ8Format,
      nullptr,  // Q4_0
      nullptr,  // Q4_1
      nullptr,  // Q5_0
      nullptr,  // Q5_1
      nullptr,  // IQ4_NL
      &kQ2KFormat,   &kQ3KFormat, &kQ4KFormat, &kQ5KFormat,  &kQ6KFormat,
      &kIq4XsFormat, &kF32Format, &kF16Format, &kBf16Format, &kRawFormat,
  };
  return kFormats[static_cast<size_t>(kind)];
}

}  // namespace hearth
