// SPDX-License-Identifier: Apache-2.0
#include "server/responses_writer.h"

#include <utility>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

Json UsageOf(const TurnUsage& usage) {
  return JsonObject{
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details",
       JsonObject{{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", JsonObject{{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

ResponsesWriter::ResponsesWriter(ReplyFacts facts, Form form)
    : facts_(std::move(facts)), form_(std::move(form)) {}

std::string ResponsesWriter::ItemId(size_t index) const {
  const ItemKind kind = items_[index].kind;
  const char* prefix = kind == ItemKind::kReasoning ? "rs_"
                       : kind == ItemKind::kMessage ? "msg_"
                                                    : "fc_";
  return prefix + facts_.id + Printf("%02zu", index);
}

Json ResponsesWriter::PartAsJson(const Item& item) const {
  if (item.kind == ItemKind::kReasoning) {
    return JsonObject{{"type", "reasoning_text"}, {"text", item.text}};
  }
  return JsonObject{{"type", "output_text"},
                    {"text", item.text},
                    {"annotations", JsonArray{}},
                    {"logprobs", JsonArray{}}};
}

// An item that has just begun shows nothing yet, and one that is over everything.
Json ResponsesWriter::ItemAsJson(size_t index) const {
  const Item& item = items_[index];
  const bool is_new = item.status == "in_progress";
  switch (item.kind) {
    case ItemKind::kReasoning: {
      JsonObject out{{"id", ItemId(index)}, {"type", "reasoning"}, {"summary", JsonArray{}}};
      out.push_back({"content", is_new ? JsonArray{} : JsonArray{PartAsJson(item)}});
      if (form_.wants_encrypted_reasoning) {
        out.push_back({"encrypted_content", is_new ? "" : item.text});
      }
      out.push_back({"status", item.status});
      return out;
    }
    case ItemKind::kMessage:
      return JsonObject{{"id", ItemId(index)},
                        {"type", "message"},
                        {"role", "assistant"},
                        {"content", is_new ? JsonArray{} : JsonArray{PartAsJson(item)}},
                        {"status", item.status}};
    case ItemKind::kCall:
      break;
  }
  return JsonObject{{"id", ItemId(index)},
                    {"type", "function_call"},
                    {"call_id", "call_" + facts_.id + Printf("%02zu", index)},
                    {"name", item.name},
                    {"arguments", is_new ? "" : item.text},
                    {"status", item.status}};
}

Json ResponsesWriter::Response(const char* status, Json error, Json usage) const {
  JsonArray output;
  for (size_t i = 0; i < items_.size(); ++i) output.push_back(ItemAsJson(i));
  Json incomplete;
  if (status == std::string_view("incomplete")) {
    incomplete = JsonObject{{"reason", "max_output_tokens"}};
  }
  JsonObject response{
      {"id", "resp_" + facts_.id},      {"object", "response"},
      {"created_at", facts_.created_s}, {"status", status},
      {"error", std::move(error)},      {"incomplete_details", std::move(incomplete)},
      {"model", facts_.model},          {"output", std::move(output)},
      {"usage", std::move(usage)}};
  response.insert(response.end(), form_.echo.begin(), form_.echo.end());
  return response;
}

std::string ResponsesWriter::Event(const char* type, JsonObject members) {
  JsonObject event{{"type", type}, {"sequence_number", num_events_++}};
  for (JsonMember& member : members) event.push_back(std::move(member));
  return AsEvent(type, Json(std::move(event)));
}

// About the item that is open.
std::string ResponsesWriter::ItemEvent(const char* type, JsonObject members) {
  members.push_back({"item_id", ItemId(items_.size() - 1)});
  members.push_back({"output_index", static_cast<int>(items_.size()) - 1});
  if (items_.back().kind != ItemKind::kCall) members.push_back({"content_index", 0});
  return Event(type, std::move(members));
}

std::string ResponsesWriter::Begin() {
  const Json response = Response("in_progress", Json(), Json());
  std::string out = Event("response.created", {{"response", response}});
  out += Event("response.in_progress", {{"response", response}});  // numbered in this order
  return out;
}

std::string ResponsesWriter::OpenItem(ItemKind kind, const std::string& name) {
  std::string out = CloseItem("completed");
  items_.push_back({kind, "", name});
  is_open_ = true;
  out += Event("response.output_item.added", {{"output_index", static_cast<int>(items_.size()) - 1},
                                              {"item", ItemAsJson(items_.size() - 1)}});
  if (kind == ItemKind::kCall) return out;
  return out + ItemEvent("response.content_part.added", {{"part", PartAsJson(items_.back())}});
}

std::string ResponsesWriter::CloseItem(const char* status) {
  if (!is_open_) return "";
  is_open_ = false;
  Item& item = items_.back();
  item.status = status;
  std::string out;
  switch (item.kind) {
    case ItemKind::kReasoning:
      out = ItemEvent("response.reasoning_text.done", {{"text", item.text}});
      break;
    case ItemKind::kMessage:
      out =
          ItemEvent("response.output_text.done", {{"text", item.text}, {"logprobs", JsonArray{}}});
      break;
    case ItemKind::kCall:
      out = ItemEvent("response.function_call_arguments.done", {{"arguments", item.text}});
      break;
  }
  if (item.kind != ItemKind::kCall) {
    out += ItemEvent("response.content_part.done", {{"part", PartAsJson(item)}});
  }
  return out +
         Event("response.output_item.done", {{"output_index", static_cast<int>(items_.size()) - 1},
                                             {"item", ItemAsJson(items_.size() - 1)}});
}

std::string ResponsesWriter::Add(int /*choice*/, const Delta& delta) {
  std::string out;
  const auto grow = [&](ItemKind kind, const char* type) {
    if (!is_open_ || items_.back().kind != kind) out = OpenItem(kind, "");
    items_.back().text += delta.text;
    JsonObject members{{"delta", delta.text}};
    if (kind == ItemKind::kMessage) members.push_back({"logprobs", JsonArray{}});
    return out + ItemEvent(type, std::move(members));
  };
  switch (delta.kind) {
    case Kind::kReasoning:
      return grow(ItemKind::kReasoning, "response.reasoning_text.delta");
    case Kind::kContent:
      return grow(ItemKind::kMessage, "response.output_text.delta");
    case Kind::kToolCall:
      return OpenItem(ItemKind::kCall, delta.text);
    case Kind::kToolArguments:
      return grow(ItemKind::kCall, "response.function_call_arguments.delta");
    case Kind::kToolCallEnd:
      break;
  }
  return CloseItem("completed");
}

std::string ResponsesWriter::EndChoice(int /*choice*/, const ChoiceEnd& end) {
  is_incomplete_ = end.why == ChoiceEnd::Why::kLength;
  return CloseItem(is_incomplete_ ? "incomplete" : "completed");
}

std::string ResponsesWriter::End(const TurnUsage& usage) {
  const char* status = is_incomplete_ ? "incomplete" : "completed";
  const Json response = Response(status, Json(), UsageOf(usage));
  if (form_.keep) form_.keep("resp_" + facts_.id, WriteJson(response));
  return Event(is_incomplete_ ? "response.incomplete" : "response.completed",
               {{"response", response}});
}

std::string ResponsesWriter::Fail(const ApiError& error) {
  std::string out = CloseItem("incomplete");
  JsonObject why{{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                 {"message", error.message}};
  return out +
         Event("response.failed", {{"response", Response("failed", Json(std::move(why)), Json())}});
}

std::string ResponsesWriter::Whole(const TurnUsage& usage) {
  return WriteJson(Response(is_incomplete_ ? "incomplete" : "completed", Json(), UsageOf(usage)));
}

}  // namespace hearth
