// SPDX-License-Identifier: Apache-2.0
// What goes back on the wire for /v1/responses: one object of items, or the events it grows by.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/dialects/responses/responses_tools.h"
#include "server/turns/reply_writer.h"
namespace hearth {

class ResponsesWriter : public ReplyWriter {
 public:
  struct Form {
    JsonObject echo{};  // settings that the response repeats
    ToolFaces faces{};
    // Thoughts for a client that keeps them; null when it did not ask.
    std::function<std::string(const std::string& thoughts)> seal{};
    // Called with the whole object once it is complete; null when nobody keeps it.
    std::function<Status(const std::string& id, const std::string& response)> keep{};
    bool is_background = false;  // is queued at first, and kept whatever becomes of it
    // Sees every event; null when nobody does.
    std::function<void(const Json& event, const std::string& bytes)> watch{};
  };
  ResponsesWriter(ReplyFacts facts, Form form);
  std::string Begin() override;
  std::string Add(int choice, const Delta& delta) override;
  std::string EndChoice(int choice, const ChoiceEnd& end) override;
  std::string End(const TurnUsage& usage) override;
  std::string Fail(const ApiError& error) override;
  std::string Whole(const TurnUsage& usage) override;
  std::string trouble() const override { return trouble_; }

 private:
  enum class ItemKind : unsigned char { kReasoning, kMessage, kCall };
  struct Item {
    ItemKind kind;
    ToolFace face;         // of a call
    std::string text{};    // thoughts, answer, or arguments
    std::string sealed{};  // thoughts, when the item is over
    std::vector<AnswerLogprob> logprobs{};
    std::string status = "in_progress";
  };
  std::string Event(const char* type, JsonObject members);
  std::string ItemEvent(const char* type, JsonObject members);
  std::string OpenItem(ItemKind kind, const std::string& name);
  std::string CloseItem(const char* status);
  std::string CloseCall(const Item& item);
  std::string GrowCall(const std::string& text);
  std::string ItemId(size_t index) const;
  Json PartAsJson(const Item& item) const;
  Json ItemAsJson(size_t index) const;
  Json CallAsJson(size_t index) const;
  Json Response(const char* status, Json error, Json usage) const;
  void Keep(const Json& response);

  const ReplyFacts facts_;
  const Form form_;
  std::vector<Item> items_;
  bool is_open_ = false, is_incomplete_ = false;
  int num_events_ = 0;
  std::string trouble_;
};

}  // namespace hearth
