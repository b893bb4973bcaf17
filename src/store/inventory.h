// SPDX-License-Identifier: Apache-2.0
// Everything on this machine that can be run by name: Hearth's store first, then what others have.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/catalogue.h"
#include "store/discovery.h"
#include "store/places.h"
#include "store/reference.h"
namespace hearth {

struct Inventory {
  std::vector<StoredModel> models;    // Hearth's own first; each origin sorted by name
  std::vector<std::string> problems;  // of Hearth's own store, to be shown
};

// Reads folders and small files; never a model.
Inventory TakeInventory(const StorePlaces& places);

// The model that a reference means, or null. Names are looked up in this order: a model of ours by
// that name, the catalogue's repository for it, a name of Ollama's. A repository without a selector
// means its usual quantisation. Complete models only.
const StoredModel* FindModel(const Inventory& inventory, const ModelReference& reference);

// "a, b, c and 4 more": for messages. Complete models only.
std::string NamesOf(const Inventory& inventory, size_t max_names = 8);

// What to say when `given` is not on this machine: how to get it, or what is like it.
std::string HowToGet(const Inventory& inventory, const ModelReference& reference,
                     std::string_view given);

// 12.1 GB, 98 MB, 512 bytes: as the publishers of models count.
std::string HumanBytes(uint64_t bytes);

}  // namespace hearth
