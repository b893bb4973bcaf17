// SPDX-License-Identifier: Apache-2.0
// The numbers a checkpoint states about itself, whichever way it states them, range-checked.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "weights/gguf.h"
namespace hearth {

// One look-up over GGUF metadata or a config.json. The virtual functions answer none when the key
// is absent *or* of another kind; the checked ones below tell the two apart in their errors.
class Facts {
 public:
  virtual ~Facts() = default;
  virtual bool Has(std::string_view key) const = 0;
  virtual std::optional<double> AsNumber(std::string_view key) const = 0;
  virtual std::optional<bool> AsFlag(std::string_view key) const = 0;
  virtual std::optional<std::string> AsText(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::string>> AsTexts(std::string_view key) const = 0;
  virtual std::optional<std::vector<double>> AsNumbers(std::string_view key) const = 0;

  // A whole number in [low, high]; absent is an error.
  Result<int> Int(std::string_view key, int low, int high) const;
  // The same; absent gives `fallback`.
  Result<int> IntOr(std::string_view key, int low, int high, int fallback) const;
  // A finite number in [low, high].
  Result<double> Real(std::string_view key, double low, double high) const;
  Result<double> RealOr(std::string_view key, double low, double high, double fallback) const;
  Result<bool> FlagOr(std::string_view key, bool fallback) const;
  Result<std::string> TextOr(std::string_view key, std::string_view fallback) const;
};

// Keys are looked up as `prefix` + key, so that families need not know their own name.
class GgufFacts : public Facts {
 public:
  GgufFacts(const GgufMetadata& metadata, std::string prefix)
      : metadata_(metadata), prefix_(std::move(prefix)) {}
  bool Has(std::string_view key) const override { return Find(key) != nullptr; }
  std::optional<double> AsNumber(std::string_view key) const override;
  std::optional<bool> AsFlag(std::string_view key) const override;
  std::optional<std::string> AsText(std::string_view key) const override;
  std::optional<std::vector<std::string>> AsTexts(std::string_view key) const override;
  std::optional<std::vector<double>> AsNumbers(std::string_view key) const override;

 private:
  const GgufValue* Find(std::string_view key) const;
  const GgufMetadata& metadata_;
  const std::string prefix_;
};

// A null member counts as absent: configs write null for "default".
class JsonFacts : public Facts {
 public:
  explicit JsonFacts(const Json& object) : object_(object) {}
  bool Has(std::string_view key) const override { return Find(key) != nullptr; }
  std::optional<double> AsNumber(std::string_view key) const override;
  std::optional<bool> AsFlag(std::string_view key) const override;
  std::optional<std::string> AsText(std::string_view key) const override;
  std::optional<std::vector<std::string>> AsTexts(std::string_view key) const override;
  std::optional<std::vector<double>> AsNumbers(std::string_view key) const override;

 private:
  const Json* Find(std::string_view key) const;
  const Json& object_;
};

}  // namespace hearth
