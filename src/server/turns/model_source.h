// SPDX-License-Identifier: Apache-2.0
// Where turns get their models: one that is always there (one_model.h), or many that come and go
// (server/models).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "server/turns/api_error.h"
#include "server/turns/served_model.h"
namespace hearth {

// A model that is loaded, and stays so for as long as somebody holds this.
struct ModelLease {
  Engine& engine;
  const ServedModel& model;
};
using HeldModel = std::shared_ptr<const ModelLease>;

// A model as lists show it.
struct ModelListing {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string state = {};  // "offered", "loading", "loaded", "unloading"; empty: always loaded
  bool is_pinned = false;
  int64_t planned_bytes = 0;                // weights, K and V, work of a step; 0: not known yet
  int64_t file_bytes = 0;                   // 0: not known yet
  std::optional<double> expires_in_s = {};  // of a loaded one; none: not while it is used, or never
  std::string error = {};                   // why it could not be loaded the last time
  // What it is, without what it needs to talk: its pointers are null. Null: not known yet.
  std::shared_ptr<const ServedModel> known = {};

  bool is_loaded() const { return state.empty() || state == "loaded"; }
};

struct ModelAsk {
  std::string name;                         // as the client wrote it
  std::optional<double> keep_alive_s = {};  // negative: for ever
  std::string client = {};                  // who asks, as ClientOf says
};

// Thread: any. Outlives whoever asks, but not the leases.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  using Ticket = uint64_t;
  struct Answer {
    HeldModel now = {};  // null: it has to be waited for, with `ticket`
    Ticket ticket = 0;
  };
  using Then = std::function<void(ApiResult<HeldModel>)>;
  // The model at once, or `then` is called once with it or with why not: on any thread, soon or
  // much later, unless Forget comes first. It must not block. Without `then` nobody waits: it is
  // there, or not.
  virtual ApiResult<Answer> Ask(const ModelAsk& ask, Then then) = 0;
  // The one who waits has gone.
  virtual void Forget(Ticket ticket) = 0;
  // 404 with the nearest names; the name as `Ask` would take it.
  virtual ApiStatus Check(const std::string& name) const = 0;
  virtual std::vector<ModelListing> List() const = 0;
  // How long a loaded model stays without requests; nothing given: as it was.
  virtual ApiStatus Keep(const std::string& name, std::optional<bool> pin,
                         std::optional<double> keep_alive_s) = 0;
  // It leaves as soon as nobody uses it. Fails for one that is pinned, or always there.
  virtual ApiStatus Unload(const std::string& name) = 0;
  virtual bool CanUnload() const { return false; }
  virtual std::string version() const = 0;  // of this program
};

// What is not known yet is left out.
Json ListingAsJson(const ModelListing& listing);

// The listing that a name means, or null. Names are compared as IsSameModel does.
const ModelListing* FindListing(const std::vector<ModelListing>& all, const std::string& name);

// 504: the request's own time limit ended while its model was not loaded yet.
ApiError TimedOutLoading(const std::string& model);

// 503: come back to another server.
ApiError ShuttingDown();

}  // namespace hearth
