// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/models/models_dialect.h"

#include <utility>

#include "base/duration.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kLoadFields[] = {
    {"keep_alive", kAny, kHonoured, 0, 0,
     "a number of seconds or a duration such as `5m`: so long it stays loaded without requests; "
     "negative: for ever"},
    {"model", kString, kHonoured, 1, 256, "the name of a model that is served"},
    {"pin", kBoolean, kHonoured, 0, 0, "true: it never leaves; false: it may, like others"},
};
constexpr Field kUnloadFields[] = {
    {"model", kString, kHonoured, 1, 256, "the name of a model that is served"},
};

ApiResult<std::string> NameIn(const Fields& fields) {
  const auto name = fields.text("model");
  if (!name) return BadField("model", "is missing");
  return *name;
}

ApiResult<std::optional<double>> KeepAliveIn(const Fields& fields) {
  const Json* given = fields.find("keep_alive");
  if (given == nullptr) return std::optional<double>();
  if (const auto seconds = given->number()) return seconds;
  if (const std::string* text = given->string()) {
    Result<double> seconds = ParseDuration(*text);
    if (seconds.ok()) return std::optional<double>(*seconds);
  }
  return BadField("keep_alive", "must be a number of seconds or a duration such as \"5m\"");
}

// How it stands with the model now.
ApiResult<Json> StandingOf(const TurnService& service, const std::string& name) {
  const std::vector<ModelListing> all = service.models();
  const ModelListing* found = FindListing(all, name);
  return ListingAsJson(found != nullptr ? *found : all.front());
}

// Asked when the model is loaded.
ApiResult<Json> Load(const TurnService& service, const ServedModel& model, const Json& body,
                     const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kLoadFields));
  HEARTH_TRY(NameIn(fields).status());
  HEARTH_ASSIGN(const std::optional<double> keep_alive, KeepAliveIn(fields));
  std::optional<bool> pin;
  if (fields.find("pin") != nullptr) pin = fields.flag("pin", false);
  HEARTH_TRY(service.KeepModel(model.name, pin, keep_alive));
  return StandingOf(service, model.name);
}

ApiResult<Json> Unload(const TurnService& service, const Json& body, const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kUnloadFields));
  HEARTH_ASSIGN(const std::string name, NameIn(fields));
  HEARTH_TRY(service.UnloadModel(name));
  return StandingOf(service, name);
}

class ModelsDialect final : public Dialect {
 public:
  explicit ModelsDialect(Auth auth) : auth_(auth) {}
  std::string name() const override { return "models"; }
  std::vector<DialectRoute> routes() const override {
    return {{{"POST", "/models/load", auth_,
              "Load a model; answered when it is loaded (several-models.md)", kLoadFields},
             {},
             {},
             false,
             Load},
            {{"POST", "/models/unload", auth_,
              "Let a model leave as soon as nobody uses it (several-models.md)", kUnloadFields},
             Unload}};
  }

 private:
  const Auth auth_;
};

}  // namespace

std::shared_ptr<const Dialect> MakeModelsDialect(Auth auth) {
  return std::make_shared<ModelsDialect>(auth);
}

}  // namespace hearth
