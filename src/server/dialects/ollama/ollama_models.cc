// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_models.h"

#include <chrono>
#include <string>
#include <utility>

#include "server/dialects/ollama/ollama_writer.h"
#include "server/turns/turn_service.h"
#include "server/turns/utc_time.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

// Clients ask for it to know which fields they may send: the version of Ollama whose API this is.
constexpr const char* kApiVersion = "0.13.0";
// For models that stay for as long as the server runs, or until somebody needs their room; and
// where the time would tell when others used them last.
constexpr const char* kNever = "9999-12-31T23:59:59Z";

constexpr Field kShowFields[] = {
    {"model", kString, kHonoured, 1, 256, "the name of a model that is served"},
    {"name", kString, kHonoured, 1, 256, "the older name of `model`"},
    {"options", kObject, kRefused, 0, 0, "models cannot be changed", "{}"},
    {"system", kString, kRefused, 0, 0, "models cannot be changed", "\"\""},
    {"template", kString, kRefused, 0, 0, "models cannot be changed", "\"\""},
    {"verbose", kBoolean, kNoEffect, 0, 0, "vocabularies and tensors are never listed"},
};
constexpr Field kPullFields[] = {
    {"insecure", kBoolean, kNoEffect, 0, 0, "nothing is downloaded"},
    {"model", kString, kHonoured, 1, 256, "the name of a model that is served"},
    {"name", kString, kHonoured, 1, 256, "the older name of `model`"},
    {"stream", kBoolean, kHonoured, 0, 0, "either way the answer is one line"},
};

// Names have a tag there.
std::string Tagged(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":latest" : name;
}

std::string ParameterSize(int64_t count) {
  const auto number = static_cast<double>(count);
  if (count >= 1'000'000'000) return Printf("%.1fB", number / 1e9);
  if (count >= 1'000'000) return Printf("%.2fM", number / 1e6);
  return Printf("%.2fK", number / 1e3);
}

std::string ModifiedAt(const ModelFacts& facts) {
  return Rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(facts.modified_s)));
}

Json DetailsOf(const ModelFacts& facts) {
  return JsonObject{{"parent_model", ""},
                    {"format", facts.format},
                    {"family", facts.family},
                    {"families", JsonArray{facts.family}},
                    {"parameter_size", ParameterSize(facts.num_parameters)},
                    {"quantization_level", facts.quantisation}};
}

// A model that nobody has asked for yet may be known by its name and size alone.
ModelFacts FactsOf(const ModelListing& listing) {
  if (listing.known != nullptr) return listing.known->facts;
  ModelFacts facts;
  facts.file_bytes = listing.file_bytes;
  return facts;
}

JsonObject CardOf(const ModelListing& listing) {
  const ModelFacts facts = FactsOf(listing);
  return {{"name", Tagged(listing.name)},
          {"model", Tagged(listing.name)},
          {"size", facts.file_bytes},
          {"digest", facts.digest},
          {"details", DetailsOf(facts)}};
}

ApiResult<Json> Tags(const TurnService& service, const Json&, const HttpRequest&) {
  JsonArray cards;
  for (const ModelListing& listing : service.models()) {
    JsonObject card = CardOf(listing);
    card.push_back({"modified_at", ModifiedAt(FactsOf(listing))});
    cards.push_back(std::move(card));
  }
  return Json(JsonObject{{"models", std::move(cards)}});
}

std::string ExpiresAt(const ModelListing& listing, const HttpRequest& http) {
  if (!listing.expires_in_s || !SeesOthers(http)) return kNever;
  const auto in = std::chrono::milliseconds(static_cast<int64_t>(*listing.expires_in_s * 1000));
  return Rfc3339(std::chrono::system_clock::now() + in);
}

ApiResult<Json> Running(const TurnService& service, const Json&, const HttpRequest& http) {
  JsonArray cards;
  for (const ModelListing& listing : service.models()) {
    if (!listing.is_loaded() || listing.known == nullptr) continue;
    JsonObject card = CardOf(listing);
    card.push_back({"expires_at", ExpiresAt(listing, http)});
    card.push_back({"size_vram", 0});
    card.push_back({"context_length", listing.known->max_context});
    cards.push_back(std::move(card));
  }
  return Json(JsonObject{{"models", std::move(cards)}});
}

ApiResult<Json> Version(const TurnService& service, const Json&, const HttpRequest&) {
  return Json(JsonObject{{"version", kApiVersion}, {"hearth", service.version()}});
}

ApiResult<std::string> NameIn(const Fields& fields) {
  const auto model = fields.text("model");
  const auto name = model ? model : fields.text("name");
  if (!name) return BadField("model", "is missing");
  return *name;
}

// The context is what requests may have, which --context may have made less than the model's.
Json ModelInfo(const ServedModel& model) {
  const ModelFacts& facts = model.facts;
  JsonObject info{{"general.architecture", facts.family},
                  {"general.basename", model.name},
                  {"general.parameter_count", facts.num_parameters},
                  {facts.family + ".context_length", model.max_context}};
  for (const auto& [name, number] : facts.shape) {
    info.push_back({facts.family + "." + name, number});
  }
  return info;
}

// The one that a name means; 404 where there is none.
ApiResult<ModelListing> ListingOf(const TurnService& service, const std::string& name) {
  HEARTH_TRY(service.CheckModel(name));
  const std::vector<ModelListing> all = service.models();
  const ModelListing* found = FindListing(all, name);
  return found != nullptr ? *found : all.front();  // one that takes any name
}

// Soon after the server's start, or for ever where its file cannot be read.
ApiError NotKnownYet(const ModelListing& listing) {
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.code = "model_not_known";
  error.param = "model";
  error.message = "model " + Quoted(listing.name);
  if (!listing.error.empty()) {
    error.message += " cannot be read: " + listing.error;
  } else {
    error.message += " has not been looked into yet; try again in a second";
    error.retry_after_s = 1;
  }
  return error;
}

ApiResult<Json> Show(const TurnService& service, const Json& body, const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kShowFields));
  HEARTH_ASSIGN(const std::string name, NameIn(fields));
  HEARTH_ASSIGN(const ModelListing listing, ListingOf(service, name));
  if (listing.known == nullptr) return NotKnownYet(listing);
  const ServedModel& model = *listing.known;
  JsonArray capabilities{"completion"};
  if (model.facts.can_call_tools) capabilities.push_back("tools");
  if (model.facts.can_think) capabilities.push_back("thinking");
  return Json(JsonObject{
      {"license", model.facts.license},
      {"modelfile", "# Served by Hearth, which has no Modelfiles.\nFROM " + model.name + "\n"},
      {"parameters", Printf("num_ctx %d", model.max_context)},
      {"template", model.facts.chat_template},
      {"details", DetailsOf(model.facts)},
      {"model_info", ModelInfo(model)},
      {"capabilities", std::move(capabilities)},
      {"modified_at", ModifiedAt(model.facts)}});
}

ApiResult<Json> Pull(const TurnService& service, const Json& body, const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kPullFields));
  HEARTH_ASSIGN(const std::string name, NameIn(fields));
  if (service.CheckModel(name).ok()) return Json(JsonObject{{"status", "success"}});
  std::string served;
  for (const ModelListing& listing : service.models()) {
    served += (served.empty() ? "" : ", ") + listing.name;
  }
  ApiError error;
  error.status = 501;
  error.code = "not_implemented";
  error.message = "model " + Quoted(name) + " cannot be pulled through this server, which serves " +
                  served + ": run `hearth pull` on its machine, and serve the model there";
  return error;
}

DialectRoute NotDone(const char* method, const char* path) {
  DialectRoute route{{method, path, Auth::kKey, "501: models are changed on the server's machine"}};
  route.handler = [path](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    ApiError error;
    error.status = 501;
    error.code = "not_implemented";
    error.message =
        std::string(path) +
        ": not implemented: models are changed with `hearth pull` and `hearth rm` on the "
        "server's machine";
    SendError(*reply, error, WriteJson(OllamaError(error)), "");
  };
  return route;
}

}  // namespace

std::vector<DialectRoute> OllamaModelRoutes() {
  return {
      {{"GET", "/api/tags", Auth::kKey, "The models that are served, as Ollama lists models"},
       Tags},
      {{"GET", "/api/ps", Auth::kKey, "Those that are loaded, as Ollama lists them"}, Running},
      {{"GET", "/api/version", Auth::kKey,
        "The version of Ollama whose API this is, and Hearth's own"},
       Version},
      {{"POST", "/api/show", Auth::kKey, "What a model is", kShowFields}, Show},
      {{"POST", "/api/pull", Auth::kKey, "Success for models that are served", kPullFields}, Pull},
      NotDone("POST", "/api/create"),
      NotDone("POST", "/api/copy"),
      NotDone("DELETE", "/api/delete"),
      NotDone("POST", "/api/push"),
      NotDone("POST", "/api/blobs/{digest}"),
  };
}

}  // namespace hearth
