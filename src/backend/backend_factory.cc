// SPDX-License-Identifier: Apache-2.0
#include "backend/backend_factory.h"

namespace hearth {

void SetBlocks(KvLayout& layout, int num_blocks) {
  for (KvGroupLayout& group : layout.groups) group.num_blocks = num_blocks;
}

}  // namespace hearth
