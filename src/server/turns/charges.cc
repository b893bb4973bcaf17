// SPDX-License-Identifier: Apache-2.0
#include "server/turns/charges.h"

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "server/turns/why_ended.h"

namespace hearth {

std::shared_ptr<RequestAccount> AccountOf(const HttpRequest& http) {
  return std::dynamic_pointer_cast<RequestAccount>(http.hold);
}

ApiStatus CheckPresent(const HttpReply& reply) {
  if (!reply.is_gone()) return {};
  return ClientLeft();  // as for one that leaves later
}

ApiStatus ChargePrompt(RequestAccount* account, int num_tokens, int num_replies) {
  // Once in the request, and once in each reply's sequence.
  const size_t bytes =
      static_cast<size_t>(num_tokens) * sizeof(Token) * static_cast<size_t>(1 + num_replies);
  if (account == nullptr || account->TrySet(Held::kPrompt, bytes)) return {};
  ApiError error = FromStatus(Status(
      Code::kExhausted, "this client's requests already hold as much memory as one client may"));
  error.retry_after_s = 1;
  return error;
}

bool IsDear(TokenMask& mask, int vocab_size) {
  constexpr double kDearS = 0.001;
  std::vector<uint32_t> bits(MaskWords(vocab_size));
  const double began = ThreadSeconds();
  // One that fails will fail again, where that ends the sequence.
  (void)mask.Fill(bits).ok();
  return ThreadSeconds() - began > kDearS;
}

ApiStatus CheckBackground(RequestAccount* account) {
  const std::optional<double> wait =
      account == nullptr ? std::nullopt : account->accounts().AskBackground();
  if (!wait) return {};
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.code = "overloaded";
  error.message = "the server's memory for requests is nearly full: no background work is started";
  error.retry_after_s = *wait;
  return error;
}

}  // namespace hearth
