// SPDX-License-Identifier: Apache-2.0
// Runs the examples of docs/sampling.md: every block marked `sampling` names logits, settings and a
// past, and ends with the probabilities that come out.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"
#include "testing/data.h"

namespace hearth {
namespace {

struct Example {
  int line = 0;  // where it begins
  std::vector<float> logits;
  SamplingParams params;
  std::vector<Token> prompt, output;
  std::vector<uint32_t> allowed;
  std::vector<std::string> wanted;  // token=probability
  std::string wanted_logprobs;      // token=logprob
};

template <class T>
std::vector<T> Read(std::istringstream& in) {
  std::vector<T> values;
  for (T value; in >> value;) values.push_back(value);
  EXPECT_TRUE(in.eof()) << "not a number";
  return values;
}

template <class T>
T ReadOne(std::istringstream& in) {
  const std::vector<T> values = Read<T>(in);
  EXPECT_EQ(values.size(), 1u);
  return values.empty() ? T() : values[0];
}

using Setter = std::function<void(Example&, std::istringstream&)>;

template <class T>
Setter Set(T SamplingParams::* field) {
  return [field](Example& e, std::istringstream& in) { e.params.*field = ReadOne<T>(in); };
}

std::map<std::string, Setter> Lists() {
  return {
      {"prompt", [](Example& e, std::istringstream& in) { e.prompt = Read<Token>(in); }},
      {"output", [](Example& e, std::istringstream& in) { e.output = Read<Token>(in); }},
      {"stop_tokens",
       [](Example& e, std::istringstream& in) { e.params.stop_tokens = Read<Token>(in); }},
      {"dry_breakers",
       [](Example& e, std::istringstream& in) { e.params.dry_breakers = Read<Token>(in); }},
      {"bad_word",
       [](Example& e, std::istringstream& in) { e.params.bad_words.push_back(Read<Token>(in)); }},
      {"logit_bias",
       [](Example& e, std::istringstream& in) {
         Token token = -1;
         in >> token;
         e.params.logit_bias.push_back({token, ReadOne<float>(in)});
       }},
      {"allowed",
       [](Example& e, std::istringstream& in) {
         e.allowed.assign((e.logits.size() + 31) / 32, 0);
         for (const Token token : Read<Token>(in)) {
           e.allowed[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
         }
       }},
  };
}

std::map<std::string, Setter> Words() {
  std::map<std::string, Setter> words = Lists();
  words["temperature"] = Set(&SamplingParams::temperature);
  words["top_k"] = Set(&SamplingParams::top_k);
  words["typical_p"] = Set(&SamplingParams::typical_p);
  words["top_p"] = Set(&SamplingParams::top_p);
  words["min_p"] = Set(&SamplingParams::min_p);
  words["xtc_probability"] = Set(&SamplingParams::xtc_probability);
  words["xtc_threshold"] = Set(&SamplingParams::xtc_threshold);
  words["repetition_penalty"] = Set(&SamplingParams::repetition_penalty);
  words["frequency_penalty"] = Set(&SamplingParams::frequency_penalty);
  words["presence_penalty"] = Set(&SamplingParams::presence_penalty);
  words["penalty_window"] = Set(&SamplingParams::penalty_window);
  words["dry_multiplier"] = Set(&SamplingParams::dry_multiplier);
  words["dry_base"] = Set(&SamplingParams::dry_base);
  words["dry_allowed_length"] = Set(&SamplingParams::dry_allowed_length);
  words["min_tokens"] = Set(&SamplingParams::min_tokens);
  words["logits"] = [](Example& e, std::istringstream& in) { e.logits = Read<float>(in); };
  words["->"] = [](Example& e, std::istringstream& in) { e.wanted = Read<std::string>(in); };
  words["logprobs"] = [](Example& e, std::istringstream& in) {
    std::getline(in >> std::ws, e.wanted_logprobs);
  };
  return words;
}

std::vector<Example> ReadExamples() {
  std::ifstream page(testing::RepoPath("docs/sampling.md"));
  EXPECT_TRUE(page.good());
  const std::map<std::string, Setter> words = Words();
  std::vector<Example> examples;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(page, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = line == "```sampling";
      if (inside) examples.push_back({});
      if (inside) examples.back().line = number;
      continue;
    }
    if (!inside) continue;
    std::istringstream in(line);
    std::string word;
    in >> word;
    const auto known = words.find(word);
    EXPECT_NE(known, words.end()) << "docs/sampling.md:" << number << ": " << word;
    if (known != words.end()) known->second(examples.back(), in);
  }
  return examples;
}

std::string Shown(Token token, double number) { return Printf("%d=%.3f", token, number); }

TEST(SamplingExamples, GiveWhatThePageSays) {
  const std::vector<Example> examples = ReadExamples();
  EXPECT_GE(examples.size(), 12u) << "the page has lost its examples";
  for (const Example& example : examples) {
    SCOPED_TRACE("docs/sampling.md:" + std::to_string(example.line));
    EXPECT_TRUE(Validate(example.params, static_cast<int>(example.logits.size())).ok());
    SamplerState past(example.params, example.prompt);
    for (const Token token : example.output) past.Append(token);
    std::vector<std::string> got;
    for (const Sampler::Chance& chance :
         Sampler().Chances(example.logits, example.params, past, example.allowed)) {
      got.push_back(Shown(chance.token, chance.probability));
    }
    EXPECT_EQ(got, example.wanted);
    if (example.wanted_logprobs.empty()) continue;
    std::string logprobs;
    for (const TokenLogprob& top : LogprobReader().Read(example.logits, 0, kMaxLogprobs).top) {
      if (!logprobs.empty()) logprobs += ' ';
      logprobs += Shown(top.token, static_cast<double>(top.logprob));
    }
    EXPECT_EQ(logprobs, example.wanted_logprobs);
  }
}

}  // namespace
}  // namespace hearth
