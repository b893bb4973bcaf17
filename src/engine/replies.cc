// SPDX-License-Identifier: Apache-2.0
#include "engine/replies.h"

#include <new>
#include <utility>

namespace hearth {

std::vector<Admission> SubmitReplies(Engine& engine, const Request& request,
                                     std::span<const std::shared_ptr<EventSink>> sinks) {
  // Copied before the first is let in: from then on the engine asks its mask.
  std::vector<Request> requests(sinks.size(), request);
  for (size_t i = 0; i < sinks.size(); ++i) {
    requests[i].choice = static_cast<uint32_t>(i);
    if (i > 0) requests[i].sampling.num_prompt_logprobs = -1;  // the first one hears them
    if (i > 0 && request.mask != nullptr) requests[i].mask = request.mask->Clone();
  }
  std::vector<Admission> admissions;
  admissions.reserve(sinks.size());  // what is let in must be known, to be cancelled
  const auto cancel_all = [&] {
    for (const Admission& earlier : admissions) {
      if (earlier.ok()) engine.Cancel(earlier.id);
    }
  };
  for (size_t i = 0; i < sinks.size(); ++i) {
    if (i > 0) requests[i].follows = admissions[0].id;
    try {
      admissions.push_back(engine.Submit(std::move(requests[i]), sinks[i]));
    } catch (const std::bad_alloc&) {
      cancel_all();
      throw;
    }
    if (admissions.back().ok()) continue;
    cancel_all();
    break;
  }
  return admissions;
}

}  // namespace hearth
