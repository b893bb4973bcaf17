// SPDX-License-Identifier: Apache-2.0
#include "weights/gguf.h"

namespace hearth {}  // namespace hearth
