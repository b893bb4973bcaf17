// SPDX-License-Identifier: Apache-2.0
// Several models behind one server: the pool's decisions carried out. One thread opens and closes
// models, one at a time; those who hold a lease keep theirs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/snapshot.h"
#include "server/turns/model_source.h"
namespace hearth {

// A model in memory, with all its parts. Destroying it gives the memory back.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual Engine& engine() = 0;
  virtual const ServedModel& model() const = 0;
};

// What is known of a model before it is loaded.
struct MeasuredModel {
  int64_t bytes = 0;  // that it will hold at most, once loaded
  ServedModel known;  // without its parts
};

// How models are opened. Thread: the host's own, one call at a time.
class ModelOpener {
 public:
  virtual ~ModelOpener() = default;
  virtual Result<MeasuredModel> Measure(const std::string& name) = 0;
  // Never holds more than `bytes`, which Measure said.
  virtual Result<std::unique_ptr<LoadedModel>> Load(const std::string& name, int64_t bytes) = 0;
};

struct HostedModel {
  std::string name;
  std::vector<std::string> aliases = {};
  bool is_pinned = false;                   // loaded at the start, and stays
  std::optional<double> keep_alive_s = {};  // none: the host's
  int64_t file_bytes = 0;
};

struct HostOptions {
  int64_t budget_bytes = 0;
  double keep_alive_s = 300;  // negative: for ever
  std::string version;        // of this program
};

// For metrics.
struct HostCounts {
  int64_t budget_bytes = 0, planned_bytes = 0;
  int num_waiting = 0;   // requests
  int num_deferred = 0;  // of those: until others have had their time with their models
  struct Model {
    std::string name, state;
    int num_users = 0;
    uint64_t num_loads = 0, num_unloads = 0, num_failures = 0;
    double load_s = 0;  // of all loads
    int64_t planned_bytes = 0;
    uint64_t num_taken = 0;  // unloads for one client while another one used it
  };
  std::vector<Model> models = {};
};

// Thread: any.
class ModelHost final : public ModelSource {
 public:
  // `opener` outlives it.
  ModelHost(const std::vector<HostedModel>& models, ModelOpener& opener,
            const HostOptions& options);
  ~ModelHost() override;  // no lease may be out

  // Until the pinned models are loaded; says which could not be.
  Status WaitForPinned();

  ApiResult<Answer> Ask(const ModelAsk& ask, Then then) override;
  void Forget(Ticket ticket) override;
  ApiStatus Check(const std::string& name) const override;
  std::vector<ModelListing> List() const override;
  ApiStatus Keep(const std::string& name, std::optional<bool> pin,
                 std::optional<double> keep_alive_s) override;
  ApiStatus Unload(const std::string& name) override;
  bool CanUnload() const override { return true; }
  std::string version() const override;

  // All engines' numbers as if they were one's, those that have gone included where they are
  // counts.
  std::shared_ptr<const EngineSnapshot> snapshot() const;
  HostCounts counts() const;

  // Refuses whoever waits or comes, lets what runs go on for at most `bound_us`, then ends it.
  void Drain(int64_t bound_us);

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hearth
