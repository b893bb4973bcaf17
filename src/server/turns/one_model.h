// SPDX-License-Identifier: Apache-2.0
// The source of a server with one model, which is loaded before the server listens and stays.
#pragma once
#include "server/turns/model_source.h"
namespace hearth {

// Thread: any. The engine and what `model` borrows outlive it.
class OneModel final : public ModelSource {
 public:
  OneModel(Engine& engine, ServedModel model);
  ApiResult<Answer> Ask(const ModelAsk& ask, Then then) override;
  void Forget(Ticket) override {}
  ApiStatus Check(const std::string& name) const override;
  std::vector<ModelListing> List() const override;
  ApiStatus Keep(const std::string& name, std::optional<bool> pin,
                 std::optional<double> keep_alive_s) override;
  ApiStatus Unload(const std::string& name) override;
  std::string version() const override { return model_->version; }

 private:
  const std::shared_ptr<const ServedModel> model_;
  const HeldModel held_;
};

}  // namespace hearth
