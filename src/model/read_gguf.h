// SPDX-License-Identifier: Apache-2.0
// The parts of a GGUF description that families share. A family's file says which of them it has.
#pragma once
#include "base/result.h"
#include "model/family.h"
#include "model/model.h"
namespace hearth {

// Layers, widths, heads, context, vocabulary; whether the head is the embedding.
Status ReadGgufShape(const GgufSource& source, ModelSpec& spec);
// One feed-forward network per layer; refuses a file that has experts.
Status ReadGgufDense(const GgufSource& source, ModelSpec& spec);
// Experts in every layer. The width of one is `expert_feed_forward_length`, or the feed-forward
// length where `width_may_be_missing`.
struct GgufExperts {
  RouterKind router = RouterKind::kNone;
  bool width_may_be_missing = false;
};
Status ReadGgufExperts(const GgufSource& source, const GgufExperts& experts, ModelSpec& spec);
// Rope over whole heads, values paired as `pairing` says, with the scaling that the file states.
Status ReadGgufRope(const GgufSource& source, RopePairing pairing, ModelSpec& spec);

// A model of the plainest kind: shape, dense networks and rope over halves.
Status ReadGgufPlain(const GgufSource& source, ModelSpec& spec);

}  // namespace hearth
