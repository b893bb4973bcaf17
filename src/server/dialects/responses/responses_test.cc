// SPDX-License-Identifier: Apache-2.0
// The responses dialect without a server: bodies read, items joined, streams equal to wholes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/dialects/responses/responses_request.h"
#include "server/dialects/responses/responses_writer.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;
using ::testing::HasSubstr;

ApiResult<JsonArray> NoneBefore(const std::string& id) { return BadField("previous", id); }

ApiResult<ResponsesRequest> Read(const std::string& members, const ItemsBefore& before) {
  Result<Json> json = ParseJson("{\"model\": \"m\", " + members + "}");
  EXPECT_TRUE(json.ok()) << members;
  return ReadResponsesRequest(*json, before, [](const std::string& encrypted) {
    return encrypted == "[so]" ? std::optional<std::string>("so") : std::nullopt;
  });
}

ResponsesRequest MustRead(const std::string& members, const ItemsBefore& before = NoneBefore) {
  auto read = Read(members, before);
  if (!read.ok()) ADD_FAILURE() << read.error().message;
  return *std::move(read);
}

std::string ParamOf(const std::string& members) {
  const auto read = Read(members, NoneBefore);
  return read.ok() ? "" : read.error().param;
}

TEST(ResponsesFields, AreInOrderAndSaid) {
  const auto table = ResponsesFields();
  for (size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1].name, table[i].name);
  for (const Field& field : table) EXPECT_FALSE(field.doc.empty()) << field.name;
}

TEST(ResponsesRequest, ReadsSettings) {
  const ResponsesRequest read = MustRead(R"("input": "hi", "instructions": "be kind", "seed": 4,
      "max_output_tokens": 9, "temperature": 0, "stream": true, "store": false,
      "reasoning": {"effort": "low", "summary": "auto"}, "metadata": {"a": "b"},
      "include": ["reasoning.encrypted_content"],
      "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}})");
  EXPECT_EQ(read.turn.conversation.messages.size(), 2u);
  EXPECT_EQ(read.turn.conversation.messages[0].role, Role::kSystem);
  EXPECT_EQ(read.turn.max_tokens, 9);
  EXPECT_EQ(read.turn.sampling.temperature, 0);
  EXPECT_TRUE(read.turn.streams && read.turn.has_seed && read.wants_encrypted_reasoning);
  EXPECT_FALSE(read.stores);
  EXPECT_EQ(read.turn.conversation.reasoning_effort, ReasoningEffort::kLow);
  EXPECT_EQ(read.turn.answer.kind, AnswerShape::Kind::kSchema);
  EXPECT_TRUE(MustRead(R"("input": "hi")").stores);
}

std::string Metadata(int pairs, size_t name_length, const std::string& value) {
  std::string members = R"("input": "hi", "metadata": {)";
  for (int i = 0; i < pairs; ++i) {
    std::string name(name_length, 'n');
    name.replace(0, 2, std::to_string(10 + i));
    members += (i > 0 ? ", \"" : "\"") + name + "\": " + value;
  }
  return members + "}";
}

TEST(ResponsesRequest, BoundsItsMetadata) {
  const auto text = [](size_t length) { return '"' + std::string(length, 'v') + '"'; };
  EXPECT_EQ(ParamOf(Metadata(16, 64, text(512))), "");
  EXPECT_EQ(ParamOf(Metadata(17, 64, text(1))), "metadata");
  EXPECT_EQ(ParamOf(Metadata(1, 65, text(1))), "metadata");
  EXPECT_EQ(ParamOf(Metadata(1, 2, text(513))), "metadata");
  EXPECT_EQ(ParamOf(Metadata(1, 2, "7")), "metadata");
  std::string umlauts = "\"";
  for (int i = 0; i < 512; ++i) umlauts += "\u00fc";
  EXPECT_EQ(ParamOf(Metadata(1, 2, umlauts + '"')), "") << "characters, not bytes";
}

TEST(ResponsesRequest, JoinsTheItemsOfATurn) {
  const ResponsesRequest read = MustRead(R"("input": [
      {"role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
      {"type": "reasoning", "id": "r", "summary": [],
       "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "id": "m", "status": "completed",
       "content": [{"type": "output_text", "text": "let me see", "annotations": []}]},
      {"type": "function_call", "call_id": "c1", "name": "get", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c1", "output": "hot"}],
      "tools": [{"type": "function", "name": "get", "parameters": {"type": "object"}}],
      "tool_choice": {"type": "function", "name": "get"})");
  const auto& said = read.turn.conversation.messages;
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[1].reasoning, "hm");
  EXPECT_EQ(said[1].content, "let me see");
  ASSERT_EQ(said[1].tool_calls.size(), 1u);
  EXPECT_EQ(said[2].name, "get");
  EXPECT_EQ(read.turn.tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(read.input.size(), 5u);
}

TEST(ResponsesRequest, GoesOnFromWhatWasBefore) {
  const auto before = [](const std::string& id) -> ApiResult<JsonArray> {
    EXPECT_EQ(id, "resp_1");
    return *ParseJson(R"([{"role": "user", "content": "one"},
        {"type": "reasoning", "encrypted_content": "[so]"},
        {"type": "message", "role": "assistant", "content": "two"}])")
                ->array();
  };
  const ResponsesRequest read =
      MustRead(R"("input": "three", "previous_response_id": "resp_1")", before);
  const auto& said = read.turn.conversation.messages;
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[1].content, "two");
  EXPECT_EQ(said[1].reasoning, "so");
  EXPECT_EQ(said[2].content, "three");
  EXPECT_EQ(read.input.size(), 1u) << "only this turn's own";
}

TEST(ResponsesRequest, RefusesByName) {
  EXPECT_EQ(ParamOf(R"("input": "hi", "background": true, "store": false)"), "background");
  EXPECT_EQ(ParamOf(R"("input": [{"type": "reasoning", "encrypted_content": "mine"}])"),
            "input[0].encrypted_content");
  EXPECT_EQ(ParamOf(R"("input": "hi", "top_logprobs": 2)"), "top_logprobs");
  EXPECT_EQ(ParamOf(R"("input": "hi", "truncation": "auto")"), "truncation");
  EXPECT_EQ(ParamOf(R"("stream": true)"), "input");
  EXPECT_EQ(ParamOf(R"("input": 3)"), "input");
  EXPECT_EQ(ParamOf(R"("input": [{"type": "item_reference", "id": "x"}])"), "input[0].type");
  EXPECT_EQ(ParamOf(R"("input": [{"role": "user", "content": [{"type": "input_image"}]}])"),
            "input[0].content[0].type");
  EXPECT_EQ(ParamOf(R"("input": "hi", "tools": [{"type": "file_search"}])"), "tools[0].type");
  EXPECT_EQ(ParamOf(R"("input": "hi", "tools": [{"type": "namespace", "name": "n",
      "tools": [{"type": "mcp"}]}])"),
            "tools[0].tools[0].type");
  EXPECT_EQ(ParamOf(R"("input": "hi", "tool_choice": "required")"), "tool_choice");
  EXPECT_EQ(ParamOf(R"("input": "hi", "include": ["file_search_call.results"])"), "include");
  EXPECT_EQ(ParamOf(R"("input": "hi", "reasoning": {"effort": "some"})"), "reasoning.effort");
  EXPECT_EQ(ParamOf(R"("input": "hi", "previous_response_id": "resp_x")"), "previous");
  EXPECT_THAT(ParamOf(R"("input": [{"role": "user", "content": "a"},
      {"type": "function_call_output", "call_id": "none", "output": "x"}])"),
              HasSubstr("input[1]"));
}

const TurnUsage kUsage{
    .prompt_tokens = 100, .completion_tokens = 20, .cached_tokens = 64, .reasoning_tokens = 2};

std::vector<Json> EventsOf(const std::string& stream) {
  std::vector<Json> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at), line = stream.find('\n', at);
    Result<Json> json = ParseJson(stream.substr(line + 7, end - line - 7));
    EXPECT_TRUE(json.ok());
    EXPECT_EQ("event: " + *json->Find("type")->string(), stream.substr(at, line - at));
    EXPECT_EQ(json->Find("sequence_number")->integer(), static_cast<int64_t>(events.size()));
    events.push_back(*json);
    at = end + 2;
  }
  return events;
}

TEST(ResponsesWriter, StreamsWhatItWouldSendWhole) {
  std::string kept_id, kept;
  ResponsesWriter writer(
      {"abc", "m", "f", 1, 100},
      {.echo = {{"metadata", JsonObject{}}},
       .encrypt = [](const std::string& thoughts) { return "[" + thoughts + "]"; },
       .keep =
           [&](const std::string& id, const std::string& response) {
             kept_id = id;
             kept = response;
             return Status();
           }});
  std::string stream = writer.Begin();
  const std::vector<Delta> reply{
      {Kind::kReasoning, "hm", 0, {}},      {Kind::kReasoning, "m", 0, {}},
      {Kind::kContent, "Let", 0, {}},       {Kind::kContent, " me", 0, {}},
      {Kind::kToolCall, "get", 0, {}},      {Kind::kToolArguments, "{\"a\"", 0, {}},
      {Kind::kToolArguments, ":1}", 0, {}}, {Kind::kToolCallEnd, "", 0, {}}};
  for (const Delta& delta : reply) stream += writer.Add(0, delta);
  stream += writer.EndChoice(0, {ChoiceEnd::Why::kToolCalls, ""});
  EXPECT_EQ(kept, "") << "nothing is kept before it is whole";
  stream += writer.End(kUsage);
  const std::vector<Json> events = EventsOf(stream);
  const Json whole = *ParseJson(writer.Whole(kUsage));
  EXPECT_EQ(kept_id, "resp_abc");
  EXPECT_EQ(kept, WriteJson(whole));
  EXPECT_EQ(*events.back().Find("type")->string(), "response.completed");
  EXPECT_EQ(WriteJson(*events.back().Find("response")), WriteJson(whole));
  const JsonArray& output = *whole.Find("output")->array();
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(*output[0].Find("encrypted_content")->string(), "[hmm]");
  EXPECT_EQ(*output[2].Find("arguments")->string(), "{\"a\":1}");
  // The deltas of an item add up to it, and its done event repeats it.
  std::vector<std::string> grown(3);
  size_t done = 0;
  for (const Json& event : events) {
    const Json* index = event.Find("output_index");
    if (const Json* delta = event.Find("delta")) {
      grown[static_cast<size_t>(*index->integer())] += *delta->string();
    }
    if (*event.Find("type")->string() == "response.output_item.done") {
      EXPECT_EQ(WriteJson(*event.Find("item")), WriteJson(output[done++]));
    }
  }
  EXPECT_EQ(grown, (std::vector<std::string>{"hmm", "Let me", "{\"a\":1}"}));
  EXPECT_EQ(done, 3u);
  EXPECT_EQ(whole.Find("usage")->Find("total_tokens")->integer(), 120);
}

TEST(ResponsesWriter, SaysWhatIsNotWhole) {
  ResponsesWriter cut({"abc", "m", "f", 1, 1}, {});
  cut.Add(0, {Kind::kContent, "x", 0, {}});
  cut.EndChoice(0, {ChoiceEnd::Why::kLength, ""});
  EXPECT_THAT(cut.End({}), HasSubstr("event: response.incomplete"));
  EXPECT_THAT(cut.Whole({}), HasSubstr(R"("incomplete_details":{"reason":"max_output_tokens"})"));
  bool is_kept = false;
  ResponsesWriter failed({"abc", "m", "f", 1, 1},
                         {.keep = [&](const std::string&, const std::string&) {
                           is_kept = true;
                           return Status();
                         }});
  failed.Add(0, {Kind::kContent, "x", 0, {}});
  ApiError error;
  error.status = 500;
  error.message = "why";
  EXPECT_THAT(failed.Fail(error), HasSubstr("event: response.failed"));
  EXPECT_FALSE(is_kept);
}

const char* const kAgentTools = R"("input": "hi", "tools": [
    {"type": "function", "name": "shell", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "crew", "description": "d", "tools": [
        {"type": "function", "name": "spawn", "parameters": {"type": "object"}}]},
    {"type": "custom", "name": "apply_patch", "description": "d",
     "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
    {"type": "web_search", "external_web_access": true}])";

TEST(ResponsesRequest, ShowsEveryToolAsAFunction) {
  const ResponsesRequest read = MustRead(kAgentTools);
  const auto& tools = read.turn.conversation.tools;
  ASSERT_EQ(tools.size(), 3u);
  EXPECT_EQ(tools[0].name, "shell");
  EXPECT_EQ(tools[1].name, "crew__spawn");
  EXPECT_EQ(tools[2].name, "apply_patch");
  EXPECT_THAT(WriteJson(tools[2].parameters), HasSubstr(R"("required":["input"])"));
  EXPECT_EQ(read.told_tools.size(), 3u) << "nobody here searches the web";
  const auto find = [&](const char* name) {
    for (const auto& [member, value] : read.echo) {
      if (member == name) return WriteJson(value);
    }
    return std::string();
  };
  EXPECT_THAT(find("tools"), HasSubstr(R"("definition":"start: /.+/")"));
  EXPECT_THAT(find("tools"), ::testing::Not(HasSubstr("web_search")));
  const ResponsesRequest named =
      MustRead(std::string(kAgentTools) +
               R"(, "tool_choice": {"type": "function", "namespace": "crew", "name": "spawn"})");
  EXPECT_EQ(named.turn.named_tool, "crew__spawn");
}

TEST(ResponsesRequest, ReadsCallsAsTheModelMadeThem) {
  const ResponsesRequest read = MustRead(R"("input": [
      {"type": "additional_tools", "role": "developer", "tools": [
          {"type": "namespace", "name": "functions", "description": "",
           "tools": [{"type": "custom", "name": "exec"}]}]},
      {"role": "user", "content": "go"},
      {"type": "custom_tool_call", "call_id": "c1", "name": "exec", "input": "say \"hi\"\n"},
      {"type": "custom_tool_call_output", "call_id": "c1", "output": "hi"},
      {"type": "function_call", "call_id": "c2", "namespace": "crew", "name": "spawn",
       "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c2",
       "output": [{"type": "input_text", "text": "done"}]}])");
  const auto& said = read.turn.conversation.messages;
  ASSERT_EQ(said.size(), 5u);
  EXPECT_EQ(said[1].tool_calls[0].arguments, R"({"input":"say \"hi\"\n"})");
  EXPECT_EQ(said[2].name, "exec");
  EXPECT_EQ(said[3].tool_calls[0].name, "crew__spawn");
  EXPECT_EQ(said[4].content, "done");
  ASSERT_EQ(read.turn.conversation.tools.size(), 1u);
  EXPECT_EQ(read.turn.conversation.tools[0].name, "exec");
  EXPECT_TRUE(read.aliases.Of("exec").is_custom);
}

// A namespace, or several, with so many tools in all.
std::string Spaces(int spaces, int tools_each) {
  std::string all;
  for (int i = 0; i < spaces; ++i) {
    std::string tools;
    for (int k = 0; k < tools_each; ++k) {
      tools += (k > 0 ? "," : "") + Printf(R"({"type": "function", "name": "f%d"})", k);
    }
    all += (i > 0 ? "," : "") + Printf(R"({"type": "namespace", "name": "n%d", "tools": [)", i) +
           tools + "]}";
  }
  return R"("input": "hi", "tools": [)" + all + "]";
}

TEST(ResponsesRequest, NamespacesAreNoWayAroundTheNumberOfTools) {
  EXPECT_EQ(MustRead(Spaces(1, 128)).turn.conversation.tools.size(), 128u);
  EXPECT_EQ(MustRead(Spaces(4, 32)).turn.conversation.tools.size(), 128u);
  EXPECT_EQ(ParamOf(Spaces(1, 129)), "tools[0].tools[128]");
  EXPECT_EQ(ParamOf(Spaces(3, 43)), "tools[2].tools[42]");
}

TEST(ResponsesWriter, TellsCallsAsTheClientNamedThem) {
  ResponsesWriter writer({"abc", "m", "f", 1, 1}, {.aliases = MustRead(kAgentTools).aliases});
  std::string stream = writer.Begin();
  const std::vector<Delta> reply{{Kind::kToolCall, "crew__spawn", 0, {}},
                                 {Kind::kToolArguments, "{}", 0, {}},
                                 {Kind::kToolCallEnd, "", 0, {}},
                                 {Kind::kToolCall, "apply_patch", 1, {}},
                                 {Kind::kToolArguments, R"({"input": "*** Beg)", 1, {}},
                                 {Kind::kToolArguments, R"(in\n"})", 1, {}},
                                 {Kind::kToolCallEnd, "", 1, {}}};
  for (const Delta& delta : reply) stream += writer.Add(0, delta);
  stream += writer.EndChoice(0, {ChoiceEnd::Why::kToolCalls, ""});
  stream += writer.End(kUsage);
  const Json whole = *ParseJson(writer.Whole(kUsage));
  const JsonArray& output = *whole.Find("output")->array();
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(*output[0].Find("namespace")->string(), "crew");
  EXPECT_EQ(*output[0].Find("name")->string(), "spawn");
  EXPECT_EQ(*output[1].Find("type")->string(), "custom_tool_call");
  EXPECT_EQ(*output[1].Find("input")->string(), "*** Begin\n");
  EXPECT_EQ(output[1].Find("namespace"), nullptr);
  std::string told;
  for (const Json& event : EventsOf(stream)) {
    if (*event.Find("type")->string() == "response.custom_tool_call_input.delta") {
      told += *event.Find("delta")->string();
    }
  }
  EXPECT_EQ(told, "*** Begin\n");
  EXPECT_EQ(TextOfArguments(R"({"input": "half)"), "half") << "cut off";
  EXPECT_EQ(TextOfArguments("nonsense"), "");
}

TEST(ResponsesWriter, TellsLogprobs) {
  const ResponsesRequest read =
      MustRead(R"("input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 2)");
  EXPECT_EQ(read.turn.sampling.num_logprobs, 2);
  ResponsesWriter writer({"abc", "m", "f", 1, 1}, {});
  AnswerLogprob logprob;
  logprob.chosen = {"A", -0.5F};
  logprob.top.push_back({"B", -1});
  Delta delta;
  delta.text = "A";
  delta.logprobs.push_back(logprob);
  std::string stream = writer.Begin();
  stream += writer.Add(0, delta);
  stream += writer.EndChoice(0, {});
  stream += writer.End(kUsage);
  EXPECT_THAT(stream, HasSubstr(R"("delta":"A","logprobs":[{"token":"A","logprob":-0.5,)"
                                R"("top_logprobs":[{"token":"B","logprob":-1.0}]}])"));
  EXPECT_THAT(writer.Whole(kUsage),
              HasSubstr(R"("logprobs":[{"token":"A","logprob":-0.5,"bytes":[65],"top_logprobs":)"
                        R"([{"token":"B","logprob":-1.0,"bytes":[66]}]}])"));
}

TEST(ResponsesWriter, StoresNothingThatCannotBeReadAgain) {
  std::string kept;
  ResponsesWriter writer({"abc", "m", "f", 1, 1},
                         {.keep = [&](const std::string&, const std::string& response) {
                           kept = response;
                           return Status();
                         }});
  writer.Begin();
  AnswerLogprob logprob;
  logprob.chosen = {"A", -0.5F};
  logprob.top.assign(20, {"B", -1});
  for (int i = 0; i < 3000; ++i) {
    Delta delta;
    delta.text = "A";
    delta.logprobs.push_back(logprob);
    writer.Add(0, delta);
  }
  writer.EndChoice(0, {});
  EXPECT_THAT(writer.End(kUsage), HasSubstr("top_logprobs")) << "the client has all of it";
  EXPECT_EQ(writer.trouble(), "logprobs_not_stored");
  EXPECT_TRUE(ParseJson(kept, kStoredLimits).ok());
  EXPECT_THAT(kept, HasSubstr(R"("text":"AAAA)"));
  EXPECT_THAT(kept, HasSubstr(R"("logprobs":[])"));
}

TEST(ResponsesRequest, CountsToolsInNamespaces) {
  std::string tools;
  for (int i = 0; i < 130; ++i)
    tools += Printf(R"(%s{"type":"function","name":"f%d"})", i > 0 ? "," : "", i);
  EXPECT_EQ(ParamOf(R"("input": "hi", "tools": [{"type":"namespace","name":"n","tools":[)" + tools +
                    "]}]"),
            "tools[0].tools[128]");
}

TEST(ResponsesWriter, SaysThatItCouldNotBeStored) {
  ResponsesWriter writer({"abc", "m", "f", 1, 1},
                         {.keep = [](const std::string&, const std::string&) {
                           return Status(Code::kIo, "the disk is full");
                         }});
  EXPECT_EQ(writer.trouble(), "");
  EXPECT_THAT(writer.End(kUsage), HasSubstr("response.completed")) << "the reply is the client's";
  EXPECT_EQ(writer.trouble(), "response_not_stored");
}

TEST(ResponsesWriter, KeepsWhatBecameOfABackgroundResponse) {
  std::vector<std::string> kept, seen;
  ResponsesWriter writer(
      {"abc", "m", "f", 1, 1},
      {.keep =
           [&](const std::string&, const std::string& response) {
             kept.push_back(*ParseJson(response)->Find("status")->string());
             return Status();
           },
       .is_background = true,
       .watch = [&](const Json& event,
                    const std::string&) { seen.push_back(*event.Find("type")->string()); }});
  EXPECT_THAT(writer.Begin(), HasSubstr(R"("status":"queued")"));
  writer.Add(0, {Kind::kContent, "x", 0, {}});
  ApiError error;
  error.code = NameOf(Finish::kCancelled);
  writer.Fail(error);
  EXPECT_EQ(kept, std::vector<std::string>{"cancelled"});
  EXPECT_EQ(std::vector<std::string>(seen.begin(), seen.begin() + 4),
            (std::vector<std::string>{"response.created", "response.queued", "response.in_progress",
                                      "response.output_item.added"}));
}

}  // namespace
}  // namespace hearth
