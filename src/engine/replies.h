// SPDX-License-Identifier: Apache-2.0
// Several replies to one prompt, which is computed once: a client's `n`.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
namespace hearth {

// One reply per sink, all to `request`, each with draws of its own (its place is `choice`) and a
// copy of the mask. The others start when the first one's prompt is computed and share its whole
// blocks; at most 15 tokens of the prompt are computed again for each. The prompt's own
// log-probabilities are told to the first. All are let in or none: the refusal is then in the one
// that was refused, and the others end with kCancelled.
std::vector<Admission> SubmitReplies(Engine& engine, const Request& request,
                                     std::span<const std::shared_ptr<EventSink>> sinks);

}  // namespace hearth
