// SPDX-License-Identifier: Apache-2.0
// Which models `hearth serve` offers when it is more than one that is always loaded: those that
// were named, or the whole store; and how each is opened.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/served_parts.h"
#include "store/places.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct OfferFlags {
  std::vector<std::string> pins;      // names that stay loaded
  std::vector<std::string> settings;  // NAME.KEY=VALUE
  int64_t memory_bytes = 0;           // for all models; 0: what the machine has
  std::string keep_alive;             // empty: 5 minutes

  // Models come and go even if there is only one.
  bool any() const { return !pins.empty() || memory_bytes > 0 || !keep_alive.empty(); }
};
// CLI11 needs the flags to stay where they are.
void AddOfferFlags(CLI::App& sub, OfferFlags& flags);

struct Offers {
  std::vector<HostedModel> models;
  std::vector<ServedSpec> specs;  // of the same, in the same order
  HostOptions host;
  std::vector<std::string> warnings;
};

// `given` are names and paths; none: all complete models of the store. One alone is pinned, unless
// --keep-alive says how long it stays. `common` is how each is opened as far as its settings do not
// say otherwise. kNotFound, with how to get a model, when there is none.
Result<Offers> FindOffers(const std::vector<std::string>& given, const OfferFlags& flags,
                          const ServedSpec& common, const Environment& environment);

// The settings of one model that is served alone; the others are left out.
Status ApplySettings(const OfferFlags& flags, ServedSpec& spec);

// Opens what was offered. Thread: as ModelOpener; the gate outlives what it opened.
class OfferOpener final : public ModelOpener {
 public:
  OfferOpener(std::vector<ServedSpec> specs, int64_t budget)
      : specs_(std::move(specs)), budget_(budget) {}
  Result<MeasuredModel> Measure(const std::string& name) override;
  Result<std::unique_ptr<LoadedModel>> Load(const std::string& name, int64_t bytes) override;

 private:
  const ServedSpec& SpecOf(const std::string& name) const;
  const std::vector<ServedSpec> specs_;
  const int64_t budget_;
  StepGate gate_;
  uint64_t num_loads_ = 0;
};

}  // namespace hearth
