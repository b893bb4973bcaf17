// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampling_defaults.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(SamplingDefaults, WithoutAnyChangeNothing) {
  SamplingParams params = OpenSampling();
  FillOpen({}, params);
  EXPECT_EQ(params.temperature, 1.0f);
  EXPECT_EQ(params.top_p, 1.0f);
  EXPECT_EQ(params.min_p, 0.0f);
  EXPECT_EQ(params.repetition_penalty, 1.0f);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_TRUE(Validate(params, 10).ok());
}

TEST(SamplingDefaults, FillWhatIsOpen) {
  SamplingParams params = OpenSampling();
  FillOpen({0.6, 0.95, 0.05, 1.1, 20, "file"}, params);
  EXPECT_EQ(params.temperature, 0.6f);
  EXPECT_EQ(params.top_p, 0.95f);
  EXPECT_EQ(params.min_p, 0.05f);
  EXPECT_EQ(params.repetition_penalty, 1.1f);
  EXPECT_EQ(params.top_k, 20);
}

// Also a value that is what would be used without any defaults.
TEST(SamplingDefaults, LeaveWhatARequestGave) {
  SamplingParams params = OpenSampling();
  params.temperature = 1.0f;
  params.top_p = 1.0f;
  params.min_p = 0.0f;
  params.repetition_penalty = 1.0f;
  params.top_k = 0;
  FillOpen({0.6, 0.95, 0.05, 1.1, 20, "file"}, params);
  EXPECT_EQ(params.temperature, 1.0f);
  EXPECT_EQ(params.top_p, 1.0f);
  EXPECT_EQ(params.min_p, 0.0f);
  EXPECT_EQ(params.repetition_penalty, 1.0f);
  EXPECT_EQ(params.top_k, 0);
}

TEST(SamplingDefaults, WhatIsStillOpenIsRefused) {
  EXPECT_FALSE(Validate(OpenSampling(), 10).ok());
  for (int field = 0; field < 5; ++field) {
    SamplingParams params;
    const SamplingParams open = OpenSampling();
    if (field == 0) params.temperature = open.temperature;
    if (field == 1) params.top_p = open.top_p;
    if (field == 2) params.min_p = open.min_p;
    if (field == 3) params.repetition_penalty = open.repetition_penalty;
    if (field == 4) params.top_k = open.top_k;
    EXPECT_FALSE(Validate(params, 10).ok()) << field;
  }
}

}  // namespace
}  // namespace hearth
