// SPDX-License-Identifier: Apache-2.0
#include "server/api_docs.h"

#include <algorithm>
#include <utility>

#include "server/dialects/chat/chat_request.h"
#include "server/dialects/completions/completion_dialect.h"
#include "server/dialects/embeddings/embedding_dialect.h"
#include "server/dialects/messages/anthropic_request.h"
#include "server/dialects/responses/responses_request.h"
#include "server/token_routes.h"

namespace hearth {
namespace {

constexpr const char* kOpening = R"(# The API

*Made by `hearth api-docs` from the tables that the server reads requests with: a field that is not
on this page is refused by its name, and one that is here does what is said.*

Bodies are JSON of at most 4 MiB, 64 levels and 200,000 values, in valid UTF-8, without double
names. Where a key is needed it comes as `Authorization: Bearer KEY` or `x-api-key: KEY`. `null`
means that a field is absent.

## Errors

    {"error": {"message": "...", "type": "...", "param": "the field", "code": "..."}}

| status | code | when |
|---|---|---|
| 400 | `invalid_json`, `unknown_parameter`, `unsupported_parameter`, null | the message names the field and what was expected |
| 400 | `context_length_exceeded` | prompt and reply do not fit; the message has the numbers; nothing is ever cut |
| 400 | `grammar_error` | what the reply must look like cannot be kept to; in a stream as its last event |
| 401 | `invalid_api_key` | no key, or one nobody has |
| 403 | null | another host's or web page's name (see operate.md), or an admin's key is needed |
| 404 | `model_not_found`, null | the message says what is served |
| 413, 431 | null | a body or head beyond the limits |
| 429 | `overloaded` | the queue is full or the wait too long; `Retry-After` is computed from today's rates |
| 429 | `rate_limit_exceeded` | more than the key may have (see operate.md); `Retry-After` is computed |
| 501 | `not_implemented` | a path that other servers have |
| 503 | `shutting_down`, `shutdown` | it drains |
| 504 | `expired` | the request's own `timeout` |

A stream that cannot be finished ends with an event that holds the error, and without `[DONE]`.

## Streams

`text/event-stream`. The head and a comment go out as soon as the request is let in; every 10 s
without an event there is a comment, which says how much of the prompt is read while that lasts.
Before the last event comments tell what the headers below tell of a whole answer. A client that
hangs up ends its request within one step.

## Headers of answers

| header | says |
|---|---|
| `x-request-id`, `request-id` | the id within `id`, also in the log |
| `x-hearth-cached-tokens` | prompt tokens found in the cache |
| `x-hearth-computed-tokens` | tokens put through the model for this answer |
| `x-hearth-warning` | what did not work beside the answer: `response_not_stored` |
| `x-hearth-cache-miss` | `none`, or why no more was found: `new from token N`, `evicted from token N`, `window missing at token N`, `not used: something is asked of every token` |
| `traceparent` | as it came |
| `x-hearth-neutralised` | what was taken out of the prompt's head because it changes with every request; see [operate.md](operate.md) |
| `x-ratelimit-*` | `limit`, `remaining` and `reset` of `requests` and `tokens`, for keys with such limits |
| `retry-after` | seconds, with 429 and 503 |

## Beyond OpenAI's types

`message.reasoning` and `message.reasoning_content` (in streams `delta.*`) hold the same text: what
the model thought, under both names that clients look for. `usage.prompt_tokens_details` has
`cached_tokens`, `usage.completion_tokens_details` has `reasoning_tokens`. A model has
`max_model_len` and `context_length`.

`prompt_logprobs` answers as vLLM does: a list with `null` for the prompt's first token and an
object per other token, from token ids to `logprob`, `rank` and `decoded_token`; in completions it
stands in each choice, in chats beside `choices`. With `echo` and `logprobs` completions' lists begin
with the prompt, and the first token's entries are `null`. A request for either computes its whole
prompt, cached or not, and may ask for 300,000 numbers in all.

## Responses

**Tools.** Models know functions alone. A `custom` tool is shown to them as a function with one
string `input`, a tool of a `namespace` as a function `NAMESPACE__NAME`; calls are told to the client
as it named them (`custom_tool_call`, `namespace`), and read back the same way. The grammar of a
custom tool is not enforced. Tools that a server would run itself are left out when they are web
searches or image generation, so the model never calls them, and refused otherwise; `tools` of the
response are those that the model was told of.

**Thoughts.** `include: ["reasoning.encrypted_content"]` adds the thoughts once more, encrypted and
authenticated (AES-256-GCM) with a key that lives with the stored responses (`--responses`; without,
with the process) and for the API key that asked. A client that sends back such an item without its
`content` is understood; one that was changed, is another key's or older than the key is refused with
`invalid_encrypted_content`. At most 2 MiB of thoughts are sealed. They are not secret from the
client: `content` tells them.

**Background.** With `background: true` the answer comes at once with status `queued`, and the
response goes on when the client goes: `in_progress` from its first token, then `completed`,
`incomplete`, `failed` or `cancelled`. GET tells how it stands, with those items that are whole;
`previous_response_id` and `input_items` find it when it is over. With `stream` its events can be
left and gone back to: `GET /v1/responses/ID?stream=true&starting_after=N`, while it runs and for the
last 16 that ended, up to 2 MiB of events each; otherwise that is refused. At most 64 run at a time,
and they end with the server: as `cancelled`, or as `failed` when the drain's time ran out.

**When storing fails** the reply is sent all the same, and says so: `x-hearth-warning:
response_not_stored` as header, in a stream as comment, `error` in the log, and
`hearth_response_store_failures_total`.
)";

const char* NameOf(Auth auth) {
  switch (auth) {
    case Auth::kPublic:
      return "no key";
    case Auth::kKey:
      return "a key, if keys are configured";
    case Auth::kAdmin:
      break;
  }
  return "an admin's key";
}

Json SchemaOf(const Field& field) {
  JsonObject schema;
  const bool is_sized = field.min < field.max;
  switch (field.kind) {
    case FieldKind::kBoolean:
      schema = {{"type", "boolean"}};
      break;
    case FieldKind::kInteger:
      schema = {{"type", "integer"}};
      break;
    case FieldKind::kNumber:
      schema = {{"type", "number"}};
      break;
    case FieldKind::kString:
      schema = {{"type", "string"}};
      break;
    case FieldKind::kArray:
      schema = {{"type", "array"}, {"items", JsonObject{}}};
      break;
    case FieldKind::kObject:
      schema = {{"type", "object"}};
      break;
    case FieldKind::kAny:
      break;
  }
  if (is_sized && (field.kind == FieldKind::kInteger || field.kind == FieldKind::kNumber)) {
    schema.push_back({"minimum", field.min});
    schema.push_back({"maximum", field.max});
  }
  if (is_sized && field.kind == FieldKind::kArray) {
    schema.push_back({"minItems", static_cast<int64_t>(field.min)});
    schema.push_back({"maxItems", static_cast<int64_t>(field.max)});
  }
  schema.push_back({"description", field.doc});
  return schema;
}

// Refused fields are left out: a client made from this never sends them.
Json BodySchema(std::span<const Field> fields) {
  JsonObject properties;
  for (const Field& field : fields) {
    if (field.use != FieldUse::kRefused) {
      properties.push_back({std::string(field.name), SchemaOf(field)});
    }
  }
  return JsonObject{
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

Json Operation(const Endpoint& endpoint) {
  JsonObject operation{{"summary", endpoint.summary}};
  if (endpoint.auth != Auth::kPublic) {
    operation.push_back({"security", JsonArray{JsonObject{{"key", JsonArray{}}}}});
  }
  const size_t brace = endpoint.path.find('{');
  if (brace != std::string::npos) {
    const std::string name = endpoint.path.substr(brace + 1, endpoint.path.find('}') - brace - 1);
    operation.push_back(
        {"parameters", JsonArray{JsonObject{{"name", name},
                                            {"in", "path"},
                                            {"required", true},
                                            {"schema", JsonObject{{"type", "string"}}}}}});
  }
  if (!endpoint.fields.empty()) {
    operation.push_back(
        {"requestBody",
         JsonObject{
             {"required", true},
             {"content", JsonObject{{"application/json",
                                     JsonObject{{"schema", BodySchema(endpoint.fields)}}}}}}});
  }
  operation.push_back(
      {"responses", JsonObject{{"200", JsonObject{{"description", "done"}}},
                               {"default", JsonObject{{"description", "an error"}}}}});
  return operation;
}

}  // namespace

std::vector<Endpoint> Endpoints() {
  return {
      {"POST", "/v1/chat/completions", Auth::kKey, "A reply to a conversation", ChatFields()},
      {"POST", "/v1/completions", Auth::kKey, "Continues a prompt", CompletionFields()},
      {"POST", "/v1/embeddings", Auth::kKey,
       "The mean of a text's states after the last norm, of length 1: mean-pooled, not a trained "
       "embedding model",
       EmbeddingFields()},
      {"POST", "/v1/responses", Auth::kKey, "A reply in items, stored unless `store` is false",
       ResponsesFields()},
      {"POST", "/v1/responses/input_tokens", Auth::kKey, "How many tokens such a request has",
       ResponsesFields()},
      {"GET", "/v1/responses/{id}", Auth::kKey,
       "A stored or background response; `?stream=true&starting_after=N`: its events"},
      {"DELETE", "/v1/responses/{id}", Auth::kKey, "Forget it"},
      {"GET", "/v1/responses/{id}/input_items", Auth::kKey, "What it was asked"},
      {"POST", "/v1/responses/{id}/cancel", Auth::kKey, "End a background response"},
      {"POST", "/v1/messages", Auth::kKey, "A reply as Anthropic's API writes it",
       MessagesFields()},
      {"POST", "/v1/messages/count_tokens", Auth::kKey, "How many tokens such a request has",
       MessagesFields()},
      {"GET", "/v1/models", Auth::kKey, "The model that is served, with its context length"},
      {"GET", "/v1/models/{id}", Auth::kKey, "The same, by its name"},
      {"POST", "/tokenize", Auth::kKey, "The tokens of a text or conversation", TokenizeFields()},
      {"POST", "/detokenize", Auth::kKey, "The text of tokens", DetokenizeFields()},
      {"GET", "/metrics", Auth::kAdmin,
       "What Prometheus reads; `?names=hearth` leaves out the names of others"},
      {"GET", "/status", Auth::kAdmin,
       "What is going on right now, as `hearth top` shows it (operate.md); without keys for "
       "everybody on this machine"},
      {"GET", "/", Auth::kPublic, "A line of text for people who look"},
      {"GET", "/livez", Auth::kPublic, "200 as long as the process can answer"},
      {"GET", "/readyz", Auth::kPublic, "200 while requests are taken and steps make progress"},
  };
}

std::string ApiMarkdown() {
  std::string out = kOpening;
  for (const Endpoint& endpoint : Endpoints()) {
    out += "\n## " + endpoint.method + " " + endpoint.path + "\n\n" + endpoint.summary +
           ". Needs: " + NameOf(endpoint.auth) + ".\n";
    if (!endpoint.fields.empty()) out += "\n" + FieldsAsMarkdown(endpoint.fields);
  }
  return out;
}

Json ApiOpenApi(const std::string& version) {
  JsonObject paths;
  for (const Endpoint& endpoint : Endpoints()) {
    std::string method = endpoint.method;
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    const auto same = [&](const JsonMember& member) { return member.first == endpoint.path; };
    auto at = std::find_if(paths.begin(), paths.end(), same);
    if (at == paths.end()) at = paths.insert(at, {endpoint.path, JsonObject{}});
    at->second.object()->push_back({method, Operation(endpoint)});
  }
  JsonObject key{{"type", "http"}, {"scheme", "bearer"}};
  return JsonObject{
      {"openapi", "3.1.0"},
      {"info", JsonObject{{"title", "Hearth"}, {"version", version}}},
      {"paths", std::move(paths)},
      {"components", JsonObject{{"securitySchemes", JsonObject{{"key", std::move(key)}}}}}};
}

}  // namespace hearth
