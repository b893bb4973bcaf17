// SPDX-License-Identifier: Apache-2.0
#include "server/turns/engine_requests.h"

#include <memory>
#include <utility>

#include "server/turns/charges.h"
#include "server/turns/reply_masks.h"

namespace hearth {

Result<std::vector<Request>> RequestsFor(const ServedModel& model, const TurnRequest& turn,
                                         std::vector<std::vector<Token>> prompts,
                                         const KvDomain& domain,
                                         const std::function<uint64_t()>& new_seed) {
  std::unique_ptr<TokenMask> mask;
  if (model.masks != nullptr && NeedsMask(turn)) {
    // Those who share cached work share compiled grammars, and nobody else.
    const std::string owner =
        Printf("%x/%016llx", domain.tenant, static_cast<unsigned long long>(domain.salt));
    HEARTH_ASSIGN(mask, model.masks->New(turn, owner));
  }
  const bool is_dear = mask != nullptr && IsDear(*mask, model.tokenizer->vocab_size());
  std::vector<Request> requests;
  for (std::vector<Token>& prompt : prompts) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling = turn.sampling;
    request.sampling.eos_tokens = model.format->stop_tokens();
    if (!turn.has_seed) request.sampling.seed = new_seed();
    request.max_tokens = turn.max_tokens;
    request.prompt_only = turn.prompt_only;
    request.pools = turn.pools;
    request.priority = turn.priority;
    request.timeout_us = turn.timeout_us;
    request.domain = domain;
    if (mask != nullptr) request.mask = mask->Clone();
    request.mask_is_dear = is_dear;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace hearth
