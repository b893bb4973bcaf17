// SPDX-License-Identifier: Apache-2.0
// A model that a test needs; the test fails with the reason when it cannot be loaded.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "model/model.h"
namespace hearth::testing {

inline Model LoadedModel(const std::string& path) {
  Result<std::unique_ptr<WeightFile>> file = WeightFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  Result<Model> model = LoadModel(*std::move(file));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

}  // namespace hearth::testing
