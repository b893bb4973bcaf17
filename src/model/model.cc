// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

namespace hearth {}  // namespace hearth
