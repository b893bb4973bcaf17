// SPDX-License-Identifier: Apache-2.0
#include "cpu/pack_format.h"

#include <cstddef>

namespace hearth {

const PackFormat* FormatOf(PackKind kind) {
  static const PackFormat* const kFormats[kNumPackKinds] = {
      &kMxfp4Format, &kQ8Format,  &kQ4_0Format, &kQ4_1Format, &kQ5_0Format, &kQ5_1Format,
      &kIq4NlFormat, &kQ2KFormat, &kQ3KFormat,  &kQ4KFormat,  &kQ5KFormat,  &kQ6KFormat,
      &kIq4XsFormat, &kF32Format, &kF16Format,  &kBf16Format, &kRawFormat,
  };
  return kFormats[static_cast<size_t>(kind)];
}

}  // namespace hearth
