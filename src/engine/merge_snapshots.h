// SPDX-License-Identifier: Apache-2.0
// Several engines' numbers as if they were one's.
#pragma once
#include <string>

#include "engine/snapshot.h"
namespace hearth {

// What has been counted since the engine's start: for one that is going away.
void AddCounts(EngineSnapshot& sum, const EngineSnapshot& one);
// Everything. KV groups are named "NAME/GROUP"; times of steps are those of whoever is slowest.
void AddSnapshot(EngineSnapshot& sum, const EngineSnapshot& one, const std::string& name);

}  // namespace hearth
