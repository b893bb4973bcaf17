// SPDX-License-Identifier: Apache-2.0
#include "server/turns/model_source.h"

#include <algorithm>
#include <utility>

namespace hearth {

Json ListingAsJson(const ModelListing& listing) {
  JsonObject out{{"model", listing.name},
                 {"state", listing.state.empty() ? "loaded" : listing.state},
                 {"pinned", listing.is_pinned}};
  if (listing.planned_bytes > 0) out.push_back({"planned_bytes", listing.planned_bytes});
  if (listing.expires_in_s) out.push_back({"expires_in_s", *listing.expires_in_s});
  if (!listing.error.empty()) out.push_back({"error", listing.error});
  return out;
}

ApiError TimedOutLoading(const std::string& model) {
  ApiError error;
  error.status = 504;
  error.type = "server_error";
  error.code = NameOf(Finish::kExpired);
  error.message = "the request timed out while model " + Quoted(model) +
                  " was being loaded; send it again with a longer timeout, or load the model first";
  return error;
}

ApiError ShuttingDown() {
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.code = "shutting_down";
  error.message = "the server is shutting down";
  error.retry_after_s = 1;
  return error;
}

const ModelListing* FindListing(const std::vector<ModelListing>& all, const std::string& name) {
  for (const ModelListing& each : all) {
    const bool is_alias =
        std::any_of(each.aliases.begin(), each.aliases.end(),
                    [&](const std::string& alias) { return IsSameModel(name, alias); });
    if (is_alias || IsSameModel(name, each.name)) return &each;
  }
  return nullptr;
}

}  // namespace hearth
