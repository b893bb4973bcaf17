// SPDX-License-Identifier: Apache-2.0
#include "model/facts.h"

#include <cmath>

#include "base/decimal.h"

namespace hearth {
namespace {

Status Missing(std::string_view key) {
  return Error(Code::kCorrupt, "%s: missing", std::string(key).c_str());
}

}  // namespace

Result<double> Facts::Real(std::string_view key, double low, double high) const {
  if (!Has(key)) return Missing(key);
  const std::optional<double> value = AsNumber(key);
  if (!value) {
    return Error(Code::kCorrupt, "%s: expected a number", std::string(key).c_str());
  }
  if (!(*value >= low && *value <= high)) {  // also catches NaN
    return Error(Code::kCorrupt, "%s: expected a number from %.10g to %.10g, found %.10g",
                 std::string(key).c_str(), low, high, *value);
  }
  return *value;
}

Result<double> Facts::RealOr(std::string_view key, double low, double high, double fallback) const {
  if (!Has(key)) return fallback;
  return Real(key, low, high);
}

Result<int> Facts::Int(std::string_view key, int low, int high) const {
  HEARTH_ASSIGN(const double value, Real(key, low, high));
  if (value != std::floor(value)) {
    return Error(Code::kCorrupt, "%s: expected a whole number, found %.10g",
                 std::string(key).c_str(), value);
  }
  return static_cast<int>(value);
}

Result<int> Facts::IntOr(std::string_view key, int low, int high, int fallback) const {
  if (!Has(key)) return fallback;
  return Int(key, low, high);
}

Result<bool> Facts::FlagOr(std::string_view key, bool fallback) const {
  if (!Has(key)) return fallback;
  const std::optional<bool> value = AsFlag(key);
  if (!value) {
    return Error(Code::kCorrupt, "%s: expected true or false", std::string(key).c_str());
  }
  return *value;
}

Result<std::string> Facts::TextOr(std::string_view key, std::string_view fallback) const {
  if (!Has(key)) return std::string(fallback);
  std::optional<std::string> value = AsText(key);
  if (!value) return Error(Code::kCorrupt, "%s: expected a string", std::string(key).c_str());
  return *std::move(value);
}

const GgufValue* GgufFacts::Find(std::string_view key) const {
  return metadata_.Find(prefix_ + std::string(key));
}

std::optional<double> GgufFacts::AsNumber(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = value->Number();
  // GGUF keeps as float32 what its source wrote in decimal, and a Hugging Face copy of the same
  // model says it in decimal still; both must compute with the same number.
  if (number && value->type == GgufType::kF32) return MeantBy(static_cast<float>(*number));
  return number;
}

std::optional<bool> GgufFacts::AsFlag(std::string_view key) const {
  const GgufValue* value = Find(key);
  return value != nullptr ? value->Bool() : std::nullopt;
}

std::optional<std::string> GgufFacts::AsText(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::string_view> text = value->String();
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::vector<std::string>> GgufFacts::AsTexts(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const auto texts = value->Strings();
  if (!texts) return std::nullopt;
  return std::vector<std::string>(texts->begin(), texts->end());
}

std::optional<std::vector<double>> GgufFacts::AsNumbers(std::string_view key) const {
  const GgufValue* value = Find(key);
  return value != nullptr ? value->Numbers() : std::nullopt;
}

const Json* JsonFacts::Find(std::string_view key) const {
  const Json* value = object_.Find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::optional<double> JsonFacts::AsNumber(std::string_view key) const {
  const Json* value = Find(key);
  return value != nullptr ? value->number() : std::nullopt;
}

std::optional<bool> JsonFacts::AsFlag(std::string_view key) const {
  const Json* value = Find(key);
  const bool* flag = value != nullptr ? value->boolean() : nullptr;
  return flag != nullptr ? std::optional<bool>(*flag) : std::nullopt;
}

std::optional<std::string> JsonFacts::AsText(std::string_view key) const {
  const Json* value = Find(key);
  const std::string* text = value != nullptr ? value->string() : nullptr;
  return text != nullptr ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::vector<std::string>> JsonFacts::AsTexts(std::string_view key) const {
  const Json* value = Find(key);
  const JsonArray* array = value != nullptr ? value->array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& element : *array) {
    if (element.string() == nullptr) return std::nullopt;
    texts.push_back(*element.string());
  }
  return texts;
}

std::optional<std::vector<double>> JsonFacts::AsNumbers(std::string_view key) const {
  const Json* value = Find(key);
  const JsonArray* array = value != nullptr ? value->array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<double> numbers;
  for (const Json& element : *array) {
    const std::optional<double> number = element.number();
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace hearth
