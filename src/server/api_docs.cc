// SPDX-License-Identifier: Apache-2.0
#include "server/api_docs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "server/all_dialects.h"
#include "server/turns/response_store.h"

namespace hearth {
namespace {

constexpr const char* kOpening = R"(# The API

*Made by `hearth api-docs` from the tables that the server reads requests with: a field that is not
on this page is refused by its name, and one that is here does what is said. With `hearth serve
--unknown-fields warn` fields that are not here are ignored instead, and so are the settings of other
engines that are refused below as not implemented: the header `x-hearth-ignored-fields` and the log name
them. Members of known objects stay checked.*

Bodies are JSON of at most 4 MiB, 64 levels and 200,000 values, in valid UTF-8, without double
names. Where a key is needed it comes as `Authorization: Bearer KEY` or `x-api-key: KEY`. `null`
means that a field is absent.

## Errors

<!-- checked: json -->
```json
{"error": {"message": "...", "type": "...", "param": "the field", "code": "..."}}
```

| status | code | when |
|---|---|---|
| 400 | `invalid_json`, `unknown_parameter`, `unsupported_parameter`, null | the message names the field and what was expected |
| 400 | `context_length_exceeded` | prompt and reply do not fit; the message has the numbers; nothing is ever cut |
| 400 | `grammar_error` | what the reply must look like cannot be kept to; in a stream as its last event |
| 400 | `invalid_event_id`, `not_a_stream`, `invalid_idempotency_key` | a header that cannot be used ([streams.md](streams.md)) |
| 401 | `invalid_api_key` | no key, or one nobody has |
| 403 | null | another host's or web page's name (see operate.md), or an admin's key is needed |
| 404 | `model_not_found`, null | the message says what is served |
| 409 | `model_pinned` | `/models/unload` of a model that stays |
| 409 | `request_mismatch`, `reply_changed` | `Last-Event-ID` of another request's reply, or of one that this server would not compute again |
| 413, 431 | null | a body or head beyond the limits |
| 422 | `idempotency_key_reused` | an `Idempotency-Key` that was used with another request |
| 429 | `overloaded` | the queue is full or the wait too long; `Retry-After` is computed from today's rates; 503 or 529 with `--overload-status` |
| 429 | `rate_limit_exceeded` | more than the key may have (see operate.md); `Retry-After` is computed |
| 501 | `not_implemented` | a path that other servers have |
| 503 | `model_not_loaded` | the model cannot be loaded; the message says why; in a stream that has begun as its last event |
| 503 | `shutting_down`, `shutdown` | it drains |
| 504 | `expired` | the request's own `timeout` |
| 507 | `disk_full` | an upload or a new batch that the store has no room for; nothing was kept ([batch.md](batch.md)) |

A stream that cannot be finished ends with an event that holds the error, and without `[DONE]`.

## Streams

`text/event-stream`. The head and a comment go out as soon as the request is let in; every 10 s
without an event there is a comment, which says how much of the prompt is read while that lasts.
Where several models are served, a stream that waits longer than a second for its model to be loaded
gets its head then, and comments until it is.
Before the last event comments tell what the headers below tell of a whole answer. A client that
hangs up ends its request within one step.

Every event of a reply has an `id:`. A client that lost its connection sends the same body again with
the last id as `Last-Event-ID` and gets exactly the rest, also after a restart: [streams.md](streams.md).

Under `/api`, where Ollama's API is, streams are lines of JSON and errors are `{"error": "..."}`:
[ollama.md](ollama.md).

## Headers of requests

| header | does |
|---|---|
| `Last-Event-ID` | the rest of a stream, after the event with this id; the body must be the same |
| `Idempotency-Key` | the same reply to the same request, for an hour; at most 255 printable ASCII characters |
| `traceparent` | is repeated in the answer and the log |
| `x-session-affinity` | a word for the conversation, of up to 256 printable ASCII characters without blanks: balancers send the same word to the same replica ([fleet.md](fleet.md)) |

## Headers of answers

| header | says |
|---|---|
| `x-request-id`, `request-id` | the id within `id`, also in the log; of a reply that is given again, the new request's own |
| `x-hearth-cached-tokens` | prompt tokens found in the cache |
| `x-hearth-loaded-tokens` | of those, the ones that were not in memory, by where they came from: `disk=480,shared=32` |
| `x-hearth-computed-tokens` | tokens put through the model for this answer |
| `x-hearth-warning` | what did not work beside the answer: `response_not_stored` |
| `x-hearth-ignored-fields` | fields that were taken and change nothing, under `/api` |
| `x-hearth-cache-miss` | `none`, or why no more was found: `new from token N`, `evicted from token N`, `window missing at token N`, `not used: something is asked of every token`; with a [cache on disk](cache-disk.md) or a [shared one](cache-shared.md) also what those said, such as `; disk,shared: absent`: `absent`, `slower` (than computing), `late`, `lost` (damaged or gone), `busy` (with other prompts) |
| `x-hearth-tools` | `generic`: the model's chat template has no form for tools, and they were told in the system message ([structured-output.md](structured-output.md)) |
| `x-hearth-ignored-fields` | fields of the request that were ignored, with `--unknown-fields warn` |
| `traceparent` | as it came |
| `x-session-affinity` | the word for this conversation: as it came, else a hash of `prompt_cache_key`, of `user`, or of the first two messages (of the first alone if it is the user's); to be sent with the conversation's next request |
| `x-hearth-neutralised` | what was taken out of the prompt's head because it changes with every request; see [operate.md](operate.md) |
| `x-ratelimit-*` | `limit`, `remaining` and `reset` of `requests` and `tokens`, for keys with such limits |
| `retry-after` | seconds, with 429 and 503 |

## Beyond OpenAI's types

`message.reasoning` and `message.reasoning_content` (in streams `delta.*`) hold the same text: what
the model thought, under both names that clients look for. `usage.prompt_tokens_details` has
`cached_tokens`, `usage.completion_tokens_details` has `reasoning_tokens`. A model has
`max_model_len` and `context_length`; `root`, its own name where the id is another one of its names; and
`default_sampling`: what requests are sampled with that do not say, and as `source` the file or the
publisher's document that recommends it.

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
`invalid_encrypted_content`. At most 2 MiB of thoughts are encrypted. They are not secret from the
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
  // In memory: nothing is stored for a document, but a dialect is born whole.
  auto store = ResponseStore::Open("");
  HEARTH_CHECK(store.ok());
  std::vector<Endpoint> all;
  for (const auto& dialect : AllDialects(**store)) {
    for (const DialectRoute& route : dialect->routes()) all.push_back(route.endpoint);
  }
  const Endpoint others[] = {
      {"GET", "/v1/models", Auth::kKey,
       "The models that are served, with their context lengths; where several are, with `state`"},
      {"GET", "/v1/models/{id}", Auth::kKey, "One of them, by its name"},
      {"GET", "/metrics", Auth::kAdmin,
       "What Prometheus reads; `?names=hearth` leaves out the names of others; without keys for "
       "everybody on this machine"},
      {"GET", "/status", Auth::kAdmin,
       "What is going on right now, as `hearth top` shows it (operate.md); without keys for "
       "everybody on this machine"},
      {"GET", "/", Auth::kPublic, "The web page for browsers (web.md), a line of text for others"},
      {"GET", "/ui/{file}", Auth::kPublic, "What the web page loads"},
      {"GET", "/livez", Auth::kPublic, "200 as long as the process can answer and is not stuck"},
      {"GET", "/readyz", Auth::kPublic,
       "200 while requests are taken and steps make progress; its second line says how often a "
       "crashed "
       "worker was replaced, if ever"},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
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
