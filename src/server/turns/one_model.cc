// SPDX-License-Identifier: Apache-2.0
#include "server/turns/one_model.h"

#include <utility>

namespace hearth {

OneModel::OneModel(Engine& engine, ServedModel model)
    : model_(std::make_shared<const ServedModel>(std::move(model))),
      held_(new ModelLease{engine, *model_}) {}

ApiResult<ModelSource::Answer> OneModel::Ask(const ModelAsk& ask, Then) {
  HEARTH_TRY(Check(ask.name));
  return Answer{held_, 0};
}

ApiStatus OneModel::Check(const std::string& name) const { return CheckModelName(*model_, name); }

std::vector<ModelListing> OneModel::List() const {
  ModelListing listing;
  listing.name = model_->name;
  listing.aliases = model_->aliases;
  listing.file_bytes = model_->facts.file_bytes;
  listing.known = model_;
  return {std::move(listing)};
}

// It stays anyway.
ApiStatus OneModel::Keep(const std::string& name, std::optional<bool>, std::optional<double>) {
  return Check(name);
}

ApiStatus OneModel::Unload(const std::string& name) {
  HEARTH_TRY(Check(name));
  ApiError error;
  error.status = 409;
  error.code = "model_pinned";
  error.param = "model";
  error.message = "this server has one model, which stays loaded";
  return error;
}

}  // namespace hearth
