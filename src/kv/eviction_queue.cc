// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_queue.h"

#include <algorithm>

#include "base/check.h"
namespace hearth {

int EvictionQueue::TenantIndex(uint32_t id) {
  const auto found = tenant_index_.find(id);
  if (found != tenant_index_.end()) return found->second;
  int index;
  if (idle_tenants_.empty()) {
    index = static_cast<int>(tenants_.size());
    tenants_.emplace_back();
  } else {
    index = idle_tenants_.back();
    idle_tenants_.pop_back();
  }
  tenants_[index].id = id;
  tenant_index_[id] = index;
  return index;
}

// Tenants come and go for years; only those with cached blocks are remembered.
void EvictionQueue::DropIfIdle(int tenant) {
  Tenant& t = tenants_[tenant];
  if (t.num_cached > 0 || !t.heap.empty()) return;
  tenant_index_.erase(t.id);
  t.heap.shrink_to_fit();
  idle_tenants_.push_back(tenant);
}

void EvictionQueue::SetEntry(int tenant, int at, const Entry& entry) {
  tenants_[tenant].heap[at] = entry;
  places_[entry.node] = {tenant, at};
}

// Moves the entry at `at` up or down to where it belongs.
void EvictionQueue::SiftEntry(int tenant, int at) {
  std::vector<Entry>& heap = tenants_[tenant].heap;
  const int size = static_cast<int>(heap.size());
  const Entry entry = heap[at];
  while (at > 0 && entry < heap[(at - 1) / 2]) {
    SetEntry(tenant, at, heap[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
    if (!(heap[child] < entry)) break;
    SetEntry(tenant, at, heap[child]);
    at = child;
  }
  SetEntry(tenant, at, entry);
}

bool EvictionQueue::GoesBefore(int tenant_a, int tenant_b) const {
  const Tenant &a = tenants_[tenant_a], &b = tenants_[tenant_b];
  const bool a_over = a.num_cached > quota_blocks_, b_over = b.num_cached > quota_blocks_;
  if (a_over != b_over) return a_over;
  return a.heap[0] < b.heap[0];
}

void EvictionQueue::SetOrder(int at, int tenant) {
  order_[at] = tenant;
  tenants_[tenant].place = at;
}

void EvictionQueue::SiftTenant(int at) {
  const int size = static_cast<int>(order_.size());
  const int tenant = order_[at];
  while (at > 0 && GoesBefore(tenant, order_[(at - 1) / 2])) {
    SetOrder(at, order_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && GoesBefore(order_[child + 1], order_[child])) ++child;
    if (!GoesBefore(order_[child], tenant)) break;
    SetOrder(at, order_[child]);
    at = child;
  }
  SetOrder(at, tenant);
}

// Call after a tenant's heap or count changed, before anything else looks at order_.
void EvictionQueue::Reorder(int tenant) {
  Tenant& t = tenants_[tenant];
  if (t.heap.empty()) {
    if (t.place < 0) return;
    const int at = t.place, last = order_.back();
    t.place = -1;
    order_.pop_back();
    if (last == tenant) return;
    SetOrder(at, last);
    SiftTenant(at);
    return;
  }
  if (t.place < 0) {
    order_.push_back(tenant);
    t.place = static_cast<int>(order_.size()) - 1;
  }
  SiftTenant(t.place);
}

void EvictionQueue::Add(int node, uint32_t tenant_id, double worth) {
  HEARTH_CHECK(!contains(node));
  if (static_cast<size_t>(node) >= places_.size()) {
    places_.resize(std::max<size_t>(static_cast<size_t>(node) + 1, places_.size() * 2));
  }
  const int tenant = TenantIndex(tenant_id);
  tenants_[tenant].heap.push_back({worth, num_added_++, node});
  SiftEntry(tenant, static_cast<int>(tenants_[tenant].heap.size()) - 1);
  Reorder(tenant);
  ++size_;
}

void EvictionQueue::Remove(int node) {
  HEARTH_CHECK(contains(node));
  const auto [tenant, at] = places_[node];
  std::vector<Entry>& heap = tenants_[tenant].heap;
  const Entry last = heap.back();
  heap.pop_back();
  places_[node] = Place();
  if (last.node != node) {
    SetEntry(tenant, at, last);
    SiftEntry(tenant, at);
  }
  Reorder(tenant);
  DropIfIdle(tenant);
  --size_;
}

std::optional<int> EvictionQueue::Next() const {
  if (order_.empty()) return std::nullopt;
  return tenants_[order_[0]].heap[0].node;
}

void EvictionQueue::Evicted(int node) {
  const Place place = places_[node];
  const Tenant& tenant = tenants_[place.tenant];
  // A tenant that pays for its excess must not age the blocks of the others.
  if (tenant.num_cached <= quota_blocks_) level_ = std::max(level_, tenant.heap[place.at].worth);
  Remove(node);
}

void EvictionQueue::AddCached(uint32_t tenant_id, int delta) {
  const int tenant = TenantIndex(tenant_id);
  tenants_[tenant].num_cached += delta;
  HEARTH_CHECK(tenants_[tenant].num_cached >= 0);
  Reorder(tenant);
  DropIfIdle(tenant);
}

int EvictionQueue::cached(uint32_t tenant) const {
  const auto found = tenant_index_.find(tenant);
  return found == tenant_index_.end() ? 0 : tenants_[found->second].num_cached;
}

Status EvictionQueue::SelfCheck() const {
  int entries = 0;
  for (size_t t = 0; t < tenants_.size(); ++t) {
    const Tenant& tenant = tenants_[t];
    entries += static_cast<int>(tenant.heap.size());
    for (size_t at = 0; at < tenant.heap.size(); ++at) {
      const Place place = places_[tenant.heap[at].node];
      const bool found = place.tenant == static_cast<int>(t) && place.at == static_cast<int>(at);
      if (!found || tenant.heap[at] < tenant.heap[at == 0 ? 0 : (at - 1) / 2]) {
        return Error(Code::kCorrupt, "eviction queue: node %d is out of place",
                     tenant.heap[at].node);
      }
    }
    const bool listed = tenant.place >= 0;
    if (listed == tenant.heap.empty() || (listed && order_[tenant.place] != static_cast<int>(t))) {
      return Error(Code::kCorrupt, "eviction queue: tenant %u is out of place", tenant.id);
    }
  }
  for (size_t at = 1; at < order_.size(); ++at) {
    if (GoesBefore(order_[at], order_[(at - 1) / 2])) {
      return Error(Code::kCorrupt, "eviction queue: tenants are out of order");
    }
  }
  if (entries != size_) {
    return Error(Code::kCorrupt, "eviction queue: %d entries, counted %d", entries, size_);
  }
  return Status();
}

}  // namespace hearth
