// SPDX-License-Identifier: Apache-2.0
// What goes back on the wire for /v1/responses: one object of items, or the events it grows by.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/dialects/responses/responses_tools.h"
#include "server/turns/dialect.h"
namespace hearth {

// Of what is kept: about what a request itself may have, so that building on it costs no more.
inline constexpr JsonLimits kStoredLimits{.max_values = 250'000};

class ResponsesWriter : public ReplyWriter {
 public:
  struct Form {
    JsonObject echo{};  // settings that the response repeats
    ToolAliases aliases{};
    // Thoughts for a client that keeps them; null when it did not ask.
    std::function<std::string(const std::string& thoughts)> encrypt{};
    // Called with the whole object once it is complete; null when nobody keeps it.
    std::function<Status(const std::string& id, const std::string& response)> keep{};
    bool is_background = false;  // is queued at first, and kept whatever becomes of it
    // So many events another writer told of it, while its model was loaded: not its first ones.
    int num_told = 0;
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
  bool keeps_stream() const override { return true; }
  std::string trouble() const override { return trouble_; }

 private:
  enum class ItemKind : unsigned char { kReasoning, kMessage, kCall };
  struct Item {
    ItemKind kind;
    ToolAlias alias;                         // of a call
    std::string text{};                      // thoughts, answer, or arguments
    std::string encrypted{};                 // thoughts, when the item is over
    JsonArray logprobs{}, brief_logprobs{};  // written: three events repeat them
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
  JsonArray Output() const;
  Json Response(const char* status, Json error, Json usage) const;
  void Keep(const Json& response);

  const ReplyFacts facts_;
  const Form form_;
  std::vector<Item> items_;
  bool is_open_ = false, is_incomplete_ = false;
  bool has_logprobs_ = true;  // false while one is written that may not have them
  int num_events_ = 0;
  std::string trouble_;
};

}  // namespace hearth
