// SPDX-License-Identifier: Apache-2.0
#include "templates/program.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Program, RendersAVariable) {
  auto program = TemplateProgram::Compile("Hello {{ name }}!");
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto text = program->Run(R"({"name": "hearth"})");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "Hello hearth!");
}

TEST(Program, RefusesWhatDoesNotParse) {
  EXPECT_EQ(TemplateProgram::Compile("{% if %}").status().code(), Code::kInvalid);
  EXPECT_EQ(TemplateProgram::Compile("\xff").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hearth
