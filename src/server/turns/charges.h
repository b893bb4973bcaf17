// SPDX-License-Identifier: Apache-2.0
// What a turn pays to its client's account on its way through the server, and where it stops when
// that is too much or nobody waits for it any longer. All take a null account, which has no bounds.
#pragma once
#include <memory>

#include "engine/token_mask.h"
#include "http/message.h"
#include "server/access/account.h"
#include "server/turns/api_error.h"
namespace hearth {

// Null when nobody counts.
std::shared_ptr<RequestAccount> AccountOf(const HttpRequest& http);

// An error when the client has left: asked at the start of every stage, so that what is abandoned
// costs the others nothing. The error is for metrics and logs; nobody reads it.
ApiStatus CheckPresent(const HttpReply& reply);

// Tokens of its prompts, which the engine will hold until the end.
ApiStatus ChargePrompt(RequestAccount* account, int num_tokens, int num_replies);

// Whether filling the mask takes longer than a step should wait for it. Tried where requests are
// read, so that the client whose mask it is waits, and its account pays.
bool IsDear(TokenMask& mask, int vocab_size);

// For work that nobody waits for.
ApiStatus CheckBackground(RequestAccount* account);

}  // namespace hearth
