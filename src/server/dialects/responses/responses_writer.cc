// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_writer.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "server/dialects/logprob_json.h"

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
    : facts_(std::move(facts)), form_(std::move(form)), num_events_(form_.num_told) {}

std::string ResponsesWriter::ItemId(size_t index) const {
  const Item& item = items_[index];
  const char* prefix = item.kind == ItemKind::kReasoning ? "rs_"
                       : item.kind == ItemKind::kMessage ? "msg_"
                       : item.alias.is_custom            ? "ctc_"
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
                    {"logprobs", has_logprobs_ ? item.logprobs : JsonArray{}}};
}

Json ResponsesWriter::CallAsJson(size_t index) const {
  const Item& item = items_[index];
  const bool is_new = item.status == "in_progress";
  JsonObject out{{"id", ItemId(index)},
                 {"type", item.alias.is_custom ? "custom_tool_call" : "function_call"},
                 {"call_id", "call_" + facts_.id + Printf("%02zu", index)},
                 {"name", item.alias.name}};
  if (!item.alias.space.empty()) out.push_back({"namespace", item.alias.space});
  if (item.alias.is_custom) {
    out.push_back({"input", is_new ? "" : TextOfArguments(item.text)});
    return out;
  }
  out.push_back({"arguments", is_new ? "" : item.text});
  out.push_back({"status", item.status});
  return out;
}

// An item that has just begun shows nothing yet, and one that is over everything.
Json ResponsesWriter::ItemAsJson(size_t index) const {
  const Item& item = items_[index];
  const bool is_new = item.status == "in_progress";
  JsonArray content;
  if (!is_new && item.kind != ItemKind::kCall) content.push_back(PartAsJson(item));
  switch (item.kind) {
    case ItemKind::kReasoning: {
      JsonObject out{{"id", ItemId(index)},
                     {"type", "reasoning"},
                     {"summary", JsonArray{}},
                     {"content", std::move(content)}};
      if (form_.encrypt) out.push_back({"encrypted_content", item.encrypted});
      out.push_back({"status", item.status});
      return out;
    }
    case ItemKind::kMessage:
      return JsonObject{{"id", ItemId(index)},
                        {"type", "message"},
                        {"role", "assistant"},
                        {"content", std::move(content)},
                        {"status", item.status}};
    case ItemKind::kCall:
      break;
  }
  return CallAsJson(index);
}

JsonArray ResponsesWriter::Output() const {
  JsonArray output;
  for (size_t i = 0; i < items_.size(); ++i) output.push_back(ItemAsJson(i));
  return output;
}

Json ResponsesWriter::Response(const char* status, Json error, Json usage) const {
  Json incomplete;
  if (status == std::string_view("incomplete")) {
    incomplete = JsonObject{{"reason", "max_output_tokens"}};
  }
  JsonObject response{
      {"id", "resp_" + facts_.id},      {"object", "response"},
      {"created_at", facts_.created_s}, {"status", status},
      {"error", std::move(error)},      {"incomplete_details", std::move(incomplete)},
      {"model", facts_.model},          {"output", Output()},
      {"usage", std::move(usage)}};
  response.insert(response.end(), form_.echo.begin(), form_.echo.end());
  return response;
}

std::string ResponsesWriter::Event(const char* type, JsonObject members) {
  JsonObject event{{"type", type}, {"sequence_number", num_events_++}};
  for (JsonMember& member : members) event.push_back(std::move(member));
  const Json json(std::move(event));
  std::string bytes = AsEvent(type, json);
  if (form_.watch) form_.watch(json, bytes);
  return bytes;
}

// About the item that is open.
std::string ResponsesWriter::ItemEvent(const char* type, JsonObject members) {
  members.push_back({"item_id", ItemId(items_.size() - 1)});
  members.push_back({"output_index", static_cast<int>(items_.size()) - 1});
  if (items_.back().kind != ItemKind::kCall) members.push_back({"content_index", 0});
  return Event(type, std::move(members));
}

std::string ResponsesWriter::Begin() {
  if (form_.num_told > 0) return "";
  const Json response = Response(form_.is_background ? "queued" : "in_progress", Json(), Json());
  std::string out = Event("response.created", {{"response", response}});
  // Numbered in this order.
  out += Event(form_.is_background ? "response.queued" : "response.in_progress",
               {{"response", response}});
  return out;
}

std::string ResponsesWriter::OpenItem(ItemKind kind, const std::string& name) {
  std::string out = CloseItem("completed");
  if (form_.is_background && items_.empty()) {
    out += Event("response.in_progress", {{"response", Response("in_progress", Json(), Json())}});
  }
  items_.push_back({.kind = kind, .alias = form_.aliases.Of(name)});
  is_open_ = true;
  out += Event("response.output_item.added", {{"output_index", static_cast<int>(items_.size()) - 1},
                                              {"item", ItemAsJson(items_.size() - 1)}});
  if (kind == ItemKind::kCall) return out;
  return out + ItemEvent("response.content_part.added", {{"part", PartAsJson(items_.back())}});
}

// A custom tool's text stands inside JSON: it is told when that is whole.
std::string ResponsesWriter::CloseCall(const Item& item) {
  if (!item.alias.is_custom) {
    return ItemEvent("response.function_call_arguments.done", {{"arguments", item.text}});
  }
  const std::string input = TextOfArguments(item.text);
  std::string out;
  if (!input.empty()) out = ItemEvent("response.custom_tool_call_input.delta", {{"delta", input}});
  out += ItemEvent("response.custom_tool_call_input.done", {{"input", input}});
  return out;
}

std::string ResponsesWriter::CloseItem(const char* status) {
  if (!is_open_) return "";
  is_open_ = false;
  Item& item = items_.back();
  item.status = status;
  std::string out;
  switch (item.kind) {
    case ItemKind::kReasoning:
      if (form_.encrypt) item.encrypted = form_.encrypt(item.text);
      out = ItemEvent("response.reasoning_text.done", {{"text", item.text}});
      break;
    case ItemKind::kMessage:
      out = ItemEvent("response.output_text.done",
                      {{"text", item.text}, {"logprobs", item.brief_logprobs}});
      break;
    case ItemKind::kCall:
      out = CloseCall(item);
      break;
  }
  if (item.kind != ItemKind::kCall) {
    out += ItemEvent("response.content_part.done", {{"part", PartAsJson(item)}});
  }
  return out +
         Event("response.output_item.done", {{"output_index", static_cast<int>(items_.size()) - 1},
                                             {"item", ItemAsJson(items_.size() - 1)}});
}

std::string ResponsesWriter::GrowCall(const std::string& text) {
  std::string out;
  if (!is_open_ || items_.back().kind != ItemKind::kCall) out = OpenItem(ItemKind::kCall, "");
  items_.back().text += text;
  if (items_.back().alias.is_custom) return out;
  return out + ItemEvent("response.function_call_arguments.delta", {{"delta", text}});
}

std::string ResponsesWriter::Add(int /*choice*/, const Delta& delta) {
  std::string out;
  const auto grow = [&](ItemKind kind, const char* type) {
    if (!is_open_ || items_.back().kind != kind) out = OpenItem(kind, "");
    Item& item = items_.back();
    item.text += delta.text;
    JsonObject members{{"delta", delta.text}};
    if (kind == ItemKind::kMessage) {
      JsonArray brief = BriefLogprobsAsJson(delta.logprobs), all = LogprobsAsJson(delta.logprobs);
      item.brief_logprobs.insert(item.brief_logprobs.end(), brief.begin(), brief.end());
      std::move(all.begin(), all.end(), std::back_inserter(item.logprobs));
      members.push_back({"logprobs", std::move(brief)});
    }
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
      return GrowCall(delta.text);
    case Kind::kToolCallEnd:
      break;
  }
  return CloseItem("completed");
}

std::string ResponsesWriter::EndChoice(int /*choice*/, const ChoiceEnd& end) {
  is_incomplete_ = end.why == ChoiceEnd::Why::kLength;
  return CloseItem(is_incomplete_ ? "incomplete" : "completed");
}

// A full disk must not take the reply with it: the client has it. That it cannot be named later is
// said beside it.
void ResponsesWriter::Keep(const Json& response) {
  if (!form_.keep) return;
  std::string text = WriteJson(response);
  // What is kept will be parsed again, when a request builds on it. Log-probabilities are what
  // makes an answer too long for that.
  if (!FitsJsonLimits(text, kStoredLimits)) {
    has_logprobs_ = false;
    Json brief = response;
    for (auto& [name, value] : *brief.object()) {
      if (name == "output") value = Output();
    }
    has_logprobs_ = true;
    text = WriteJson(brief);
    trouble_ = "logprobs_not_stored";
  }
  const bool is_kept =
      FitsJsonLimits(text, kStoredLimits) && form_.keep("resp_" + facts_.id, std::move(text)).ok();
  if (!is_kept) trouble_ = "response_not_stored";
}

std::string ResponsesWriter::End(const TurnUsage& usage) {
  const char* status = is_incomplete_ ? "incomplete" : "completed";
  const Json response = Response(status, Json(), UsageOf(usage));
  Keep(response);
  return Event(is_incomplete_ ? "response.incomplete" : "response.completed",
               {{"response", response}});
}

std::string ResponsesWriter::Fail(const ApiError& error) {
  std::string out = CloseItem("incomplete");
  JsonObject why{{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                 {"message", error.message}};
  // Only who asked for it to go on can ask what became of it.
  const bool is_cancelled = form_.is_background && error.code == NameOf(Finish::kCancelled);
  const Json response = is_cancelled ? Response("cancelled", Json(), Json())
                                     : Response("failed", Json(std::move(why)), Json());
  if (form_.is_background) Keep(response);
  return out + Event("response.failed", {{"response", response}});
}

std::string ResponsesWriter::Whole(const TurnUsage& usage) {
  return WriteJson(Response(is_incomplete_ ? "incomplete" : "completed", Json(), UsageOf(usage)));
}

}  // namespace hearth
