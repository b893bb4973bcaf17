// SPDX-License-Identifier: Apache-2.0
// Which cached block of a group goes first when room is needed: tenants over their share before
// others, then the least worth keeping. What makes a block worth keeping is the cache's business.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
namespace hearth {

// Worth ages by inflation: `level` is the worth of what was evicted last, and a block joins with
// level + weight. A block of weight w that nobody touches so survives about w turnovers of the
// pool; with equal weights the order is least recently used. Every operation is O(log n).
// Thread: engine only.
class EvictionQueue {
 public:
  // A tenant that caches more than `quota_blocks` is over its share.
  explicit EvictionQueue(int quota_blocks) : quota_blocks_(quota_blocks) {}

  void Add(int node, uint32_t tenant, double worth);
  void Remove(int node);
  bool contains(int node) const {
    return static_cast<size_t>(node) < places_.size() && places_[node].tenant >= 0;
  }
  double worth(int node) const {  // of one that it contains
    const Place& place = places_[node];
    return tenants_[place.tenant].heap[place.at].worth;
  }
  // The node that should go next. The caller removes it, and thereby ages the others.
  std::optional<int> Next() const;
  void Evicted(int node);

  // Cached blocks of a tenant, whether they are in the queue yet or not.
  void AddCached(uint32_t tenant, int delta);
  int cached(uint32_t tenant) const;
  double level() const { return level_; }
  int size() const { return size_; }

  Status SelfCheck() const;

 private:
  struct Entry {
    double worth;
    uint64_t turn;  // among equals the one that came first goes first
    int node;
    bool operator<(const Entry& other) const {
      return worth != other.worth ? worth < other.worth : turn < other.turn;
    }
  };
  struct Tenant {
    uint32_t id = 0;
    int num_cached = 0;
    int place = -1;           // in order_, -1 when `heap` is empty
    std::vector<Entry> heap;  // least worth on top
  };
  struct Place {
    int tenant = -1;  // index into tenants_
    int at = 0;       // index into its heap
  };

  int TenantIndex(uint32_t id);
  void DropIfIdle(int tenant);
  void SetEntry(int tenant, int at, const Entry& entry);
  void SiftEntry(int tenant, int at);
  bool GoesBefore(int tenant_a, int tenant_b) const;
  void SetOrder(int at, int tenant);
  void SiftTenant(int at);
  void Reorder(int tenant);

  int quota_blocks_;
  int size_ = 0;
  double level_ = 0;
  uint64_t num_added_ = 0;
  std::vector<Place> places_;  // by node
  std::vector<Tenant> tenants_;
  std::vector<int> idle_tenants_;
  std::vector<int> order_;  // heap of tenants with a non-empty heap
  std::unordered_map<uint32_t, int> tenant_index_;
};

}  // namespace hearth
