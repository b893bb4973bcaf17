// SPDX-License-Identifier: Apache-2.0
// A turn as a server's chat API has it: the request's body, and the stream of its reply read back.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "talk/answerer.h"
namespace hearth {

// `schema` may be null: the reply is not held to one.
Json ChatRequestBody(const std::string& model, const Conversation& conversation,
                     const TalkSettings& settings, const Json* schema);

// Reads server-sent events of chat completions, cut anyhow. The server may be of another kind:
// what it sends beside the known fields is passed over. Thread: one.
class ChatStreamReader {
 public:
  explicit ChatStreamReader(const TalkSettings& settings)
      : max_tokens_(settings.max_tokens.value_or(0)) {}
  using Hear = std::function<void(ReplyEvent::Kind kind, const std::string& text)>;
  // An error ends the turn: the server's own, or a stream that makes no sense.
  Status Feed(std::string_view bytes, const Hear& hear);
  // The stream is over. kIo when the reply was not.
  Result<TurnResult> Finish() const;
  // What came so far, of a turn that was stopped.
  TurnResult Stopped() const;
  bool has_begun() const { return has_begun_; }

 private:
  Status TakeData(std::string_view data, const Hear& hear);
  void TakeDelta(const Json& delta, const Hear& hear);
  void TakeCalls(const Json& calls, const Hear& hear);
  void Add(ReplyEvent::Kind kind, const std::string& text, const Hear& hear);

  const int max_tokens_;  // 0: no bound of ours
  std::string line_;      // not whole yet
  TurnResult result_;
  std::optional<std::string> finish_;
  int64_t last_call_ = -1;
  bool has_begun_ = false;
};

// The message of an error's body, or the status alone.
std::string ErrorMessage(long http_status, std::string_view body);

}  // namespace hearth
