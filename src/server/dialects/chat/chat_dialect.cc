// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/chat/chat_dialect.h"

#include <utility>

#include "server/dialects/chat/chat_request.h"
#include "server/dialects/chat/chat_writer.h"

namespace hearth {
namespace {

class ChatDialect final : public Dialect {
 public:
  std::string name() const override { return "chat"; }
  std::vector<DialectRoute> routes() const override {
    return {
        {{"POST", "/v1/chat/completions", Auth::kKey, "A reply to a conversation", ChatFields()}}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest&) const override {
    HEARTH_ASSIGN(TurnRequest turn, ReadChatRequest(body));
    return DialectTurn{std::move(turn), [](const TurnRequest& request, const ReplyFacts& facts) {
                         return std::make_unique<ChatWriter>(request, facts);
                       }};
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeChatDialect() { return std::make_shared<ChatDialect>(); }

}  // namespace hearth
