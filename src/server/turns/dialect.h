// SPDX-License-Identifier: Apache-2.0
// What a dialect is: one API with its reader, its writer, its errors, its routes and their
// documents. Everything between reader and writer is shared (turn_service.h, exchange.h).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "http/message.h"
#include "http/router.h"
#include "server/turns/api_error.h"
#include "server/turns/fields.h"
#include "server/turns/reply_writer.h"
#include "server/turns/turn_request.h"
namespace hearth {

class TurnService;
struct ServedModel;

// A request that was read: what it wants, and who will write its reply. What the writer must know
// of the request beyond TurnRequest is in the function.
struct DialectTurn {
  TurnRequest turn;
  // Called once, when everything about the request is known to be right, before it is let in.
  std::function<std::unique_ptr<ReplyWriter>(const TurnRequest&, const ReplyFacts&)> write;
  // Where the reply is written instead of to its client, for one that goes on without; called
  // before `write`. Null: nowhere else.
  std::function<ApiResult<std::shared_ptr<HttpReply>>(const ReplyFacts&,
                                                      std::shared_ptr<HttpReply>)>
      detach = {};
  // Whether the reply runs already, or is kept, and the client now hears it: then nothing is
  // computed. Asked before `detach`. Null: it never does.
  std::function<bool(const ReplyFacts&, const std::shared_ptr<HttpReply>&)> rejoin = {};
  // What only the model can say of the request, asked once its name is known. Null: nothing.
  std::function<ApiStatus(const ServedModel&, TurnRequest&)> fit = {};
  // The whole answer, when there is nothing to run and the model is loaded; `write` is not called.
  std::shared_ptr<const Json> answer = {};
  // The answer instead, once the model has been told to leave, where models do.
  std::shared_ptr<const Json> unload_answer = {};  // null: it stays
};

// A route as clients and documents know it.
struct Endpoint {
  std::string method, path;
  Auth auth;
  std::string summary;
  std::span<const Field> fields = {};  // of the body
};

// Who answers there: `handler` on the socket's thread, which it must not keep (or see is_slow); or
// with the body parsed, where bodies are read, `answer`; or `model_answer`, when the model that the
// body's `model` names is loaded; or, when all are null, a turn. A GET has no body: its `answer` is
// asked on the socket's thread with an empty one.
struct DialectRoute {
  Endpoint endpoint;
  std::function<ApiResult<Json>(const TurnService&, const Json& body, const HttpRequest& http)>
      answer = {};
  HttpHandler handler = {};
  bool is_slow = false;  // the handler reads files or long texts: it runs where bodies are read
  std::function<ApiResult<Json>(const TurnService&, const ServedModel&, const Json& body,
                                const HttpRequest& http)>
      model_answer = {};
  size_t max_body_bytes = 0;  // 0: as much as any other's
};

// Thread: any; it is asked by several readers at a time.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string name() const = 0;  // "chat": for metrics and logs
  // In the order of the documents. Handlers may outlive the dialect's other callers: what they need
  // they hold.
  virtual std::vector<DialectRoute> routes() const = 0;
  // For routes that are turns. Fails with the field at fault. `http` is for headers and captures.
  virtual ApiResult<DialectTurn> Read(const Json& body, const HttpRequest& http) const;
  // The JSON of a refusal; OpenAI's form unless the API has its own.
  virtual std::string DescribeError(const ApiError& error) const;
};

using Dialects = std::vector<std::shared_ptr<const Dialect>>;

// "data: {…}\n\n", or with a name "event: name\ndata: {…}\n\n".
std::string AsEvent(const Json& json);
std::string AsEvent(const std::string& name, const Json& json);
// What chunks of OpenAI's forms say under `prompt_progress`.
Json ProgressAsJson(const PromptProgress& progress);

}  // namespace hearth
