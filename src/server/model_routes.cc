// SPDX-License-Identifier: Apache-2.0
#include "server/model_routes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/access/client.h"

namespace hearth {
namespace {

// Paths that clients know and this server does not serve: said by name, not as a typing error.
constexpr const char* kNotDone[] = {"/v1/moderations", "/v1/images/generations",
                                    "/v1/audio/speech"};

// What requests that leave these open are sampled with.
Json SamplingCard(const SamplingDefaults& defaults) {
  return JsonObject{{"temperature", defaults.temperature.value_or(1)},
                    {"top_p", defaults.top_p.value_or(1)},
                    {"top_k", defaults.top_k.value_or(0)},
                    {"min_p", defaults.min_p.value_or(0)},
                    {"repetition_penalty", defaults.repetition_penalty.value_or(1)},
                    {"source", defaults.source.empty() ? Json() : Json(defaults.source)}};
}

// One per name; `root` is what replies call the model. Where models come and go, it says which are
// loaded, and of those that were not looked into yet little else.
Json ModelCard(const HttpRequest& http, const ModelListing& listing, const std::string& name) {
  JsonObject card{{"id", name},
                  {"root", listing.name},
                  {"object", "model"},
                  {"created", 0},
                  {"owned_by", "hearth"}};
  if (const ServedModel* model = listing.known.get()) {
    card.push_back({"max_model_len", model->max_context});
    card.push_back({"context_length", model->max_context});
    card.push_back({"default_sampling", SamplingCard(model->sampling)});
  }
  if (listing.state.empty()) return card;
  const Json standing = ListingAsJson(listing);
  for (const JsonMember& member : *standing.object()) {
    const bool is_shown = member.first != "expires_in_s" || SeesOthers(http);
    if (member.first != "model" && is_shown) card.push_back(member);
  }
  return card;
}

std::vector<std::string> NamesOf(const ModelListing& listing) {
  std::vector<std::string> names{listing.name};
  for (const std::string& alias : listing.aliases) {
    if (std::find(names.begin(), names.end(), alias) == names.end()) names.push_back(alias);
  }
  return names;
}

}  // namespace

void AddModelRoutes(TurnService& service, Router& router) {
  for (const char* path : kNotDone) {
    router.Add("POST", path, Auth::kKey,
               [path](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                 ApiError error;
                 error.status = 501;
                 error.code = "not_implemented";
                 error.message = std::string(path) + ": not implemented";
                 SendError(*reply, error, WriteJson(OpenAiError(error)), "");
               });
  }
  router.Add("GET", "/v1/models", Auth::kKey,
             [&service](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               JsonArray cards;
               for (const ModelListing& listing : service.models()) {
                 for (const std::string& name : NamesOf(listing)) {
                   cards.push_back(ModelCard(request, listing, name));
                 }
               }
               SendJson(*reply, JsonObject{{"object", "list"}, {"data", std::move(cards)}});
             });
  router.Add("GET", "/v1/models/{id}", Auth::kKey,
             [&service](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               const ApiStatus known = service.CheckModel(request.path_captures[0]);
               if (!known.ok()) {
                 return SendError(*reply, known.error(), WriteJson(OpenAiError(known.error())), "");
               }
               const std::vector<ModelListing> all = service.models();
               const ModelListing* found = FindListing(all, request.path_captures[0]);
               const ModelListing& listing = found != nullptr ? *found : all.front();
               const std::vector<std::string> names = NamesOf(listing);
               const auto name = std::find(names.begin(), names.end(), request.path_captures[0]);
               SendJson(*reply,
                        ModelCard(request, listing, name == names.end() ? names[0] : *name));
             });
}

}  // namespace hearth
