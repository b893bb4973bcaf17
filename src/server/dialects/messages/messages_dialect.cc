// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/messages/messages_dialect.h"

#include <utility>

#include "server/dialects/messages/anthropic_request.h"
#include "server/dialects/messages/anthropic_writer.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

ApiResult<Json> CountTokens(const TurnService& service, const ServedModel& model, const Json& body,
                            const HttpRequest&) {
  HEARTH_ASSIGN(MessagesRequest read, ReadMessagesRequest(body, true));
  HEARTH_ASSIGN(const int64_t count, service.CountTokens(model, std::move(read.turn)));
  return Json(JsonObject{{"input_tokens", count}});
}

class MessagesDialect final : public Dialect {
 public:
  std::string name() const override { return "messages"; }
  std::vector<DialectRoute> routes() const override {
    return {{{"POST", "/v1/messages", Auth::kKey, "A reply as Anthropic's API writes it",
              MessagesFields()}},
            {{"POST", "/v1/messages/count_tokens", Auth::kKey, "How many tokens such a request has",
              MessagesFields()},
             {},
             {},
             false,
             CountTokens}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest&) const override {
    HEARTH_ASSIGN(MessagesRequest read, ReadMessagesRequest(body, false));
    const auto write = [shows_thinking = read.shows_thinking](const TurnRequest&,
                                                              const ReplyFacts& facts) {
      return std::make_unique<MessagesWriter>(facts, shows_thinking);
    };
    return DialectTurn{std::move(read.turn), write};
  }
  std::string DescribeError(const ApiError& error) const override {
    return WriteJson(AnthropicError(error));
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeMessagesDialect() { return std::make_shared<MessagesDialect>(); }

}  // namespace hearth
