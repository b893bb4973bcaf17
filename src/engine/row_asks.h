// SPDX-License-Identifier: Apache-2.0
// What a sequence needs of its rows: all logits, the largest ones, or the likeliest token alone.
#pragma once
#include "backend/backend.h"
#include "engine/sequence.h"
namespace hearth {

// The least that gives the same token as all logits would, of what the backend can do.
RowAsk AskFor(const Sequence& sequence, const BackendCapabilities& can);

}  // namespace hearth
