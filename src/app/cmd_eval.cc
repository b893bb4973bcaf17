// SPDX-License-Identifier: Apache-2.0
// hearth eval: logits of a model on given tokens, raw, for comparing engines and checkpoints.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "app/commands.h"
#include "app/flag_checks.h"
#include "app/lone_sequence.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_model.h"
#include "base/terminal.h"
#include "model/reference.h"
#include "platform/file.h"
#include "platform/isa.h"

namespace hearth {
namespace {

struct LogitsOptions {
  std::string model, tokens, out, dump;
  std::string backend = "reference";
  bool yarn_truncate = false;
  BackendFlags hardware;
  int chunk = 512;
};

// Appends numbers to a file as they come. Failures (a full disk) are remembered and told at Close.
class ArrayWriter {
 public:
  ArrayWriter(std::string path, bool as_float)
      : path_(std::move(path)), as_float_(as_float), file_(std::fopen(path_.c_str(), "wb")) {
    if (file_ == nullptr) error_ = errno;
  }
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;
  ~ArrayWriter() {
    if (file_ != nullptr) std::fclose(file_);
  }

  void Add(std::span<const double> values) {
    if (error_ != 0) return;
    if (as_float_) {
      const std::vector<float> narrow(values.begin(), values.end());
      Put(narrow.data(), narrow.size() * sizeof(float));
    } else {
      Put(values.data(), values.size_bytes());
    }
  }
  Status Close() {
    if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) {
      error_ = errno;
    }
    if (error_ == 0) return Status();
    return Error(Code::kIo, "%s: cannot write: %s", path_.c_str(), std::strerror(error_));
  }

 private:
  void Put(const void* data, size_t size) {
    if (std::fwrite(data, 1, size, file_) != size) error_ = errno;
  }
  const std::string path_;
  const bool as_float_;
  std::FILE* file_;
  int error_ = 0;
};

Result<std::vector<Token>> ReadTokens(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  HEARTH_ASSIGN(const std::string bytes, ReadTextFile(path, kMaxBytes));
  if (bytes.empty() || bytes.size() % sizeof(Token) != 0) {
    return Error(Code::kInvalid,
                 "%s: %zu bytes are not a list of 32-bit token ids: expected a multiple of 4",
                 path.c_str(), bytes.size());
  }
  std::vector<Token> tokens(bytes.size() / sizeof(Token));
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

// One file per point and layer, so that two engines can be compared step by step.
Reference::Observer DumpInto(const std::string& directory) {
  return [directory](std::string_view point, int layer, std::span<const double> values) {
    const std::string name =
        layer < 0 ? std::string(point) : std::string(point) + "-" + std::to_string(layer);
    ArrayWriter writer(directory + "/" + name + ".f64", false);
    writer.Add(values);
    const Status status = writer.Close();
    if (!status.ok()) PrintError("hearth: %s\n", status.message().c_str());
  };
}

Status EvalOnCpu(const Model& model, std::span<const Token> tokens, const LogitsOptions& options,
                 ArrayWriter& writer) {
  if (!options.dump.empty()) {
    return Error(Code::kInvalid, "--dump needs --backend reference");
  }
  if (tokens.size() > static_cast<size_t>(model.spec.max_context)) {
    return Error(Code::kInvalid, "%zu tokens do not fit the model's context length of %d",
                 tokens.size(), model.spec.max_context);
  }
  HEARTH_ASSIGN(LoneSequence sequence,
                LoneSequence::Make(model, options.hardware, static_cast<int>(tokens.size())));
  return sequence.Append(tokens, options.chunk, true, [&writer](std::span<const float> logits) {
    writer.Add(std::vector<double>(logits.begin(), logits.end()));
  });
}

Status EvalLogits(const LogitsOptions& options) {
  const bool as_float = options.out.ends_with(".f32");
  if (!as_float && !options.out.ends_with(".f64")) {
    return Error(Code::kInvalid, "--out %s: expected a name that ends in .f32 or .f64",
                 options.out.c_str());
  }
  HEARTH_ASSIGN(const std::vector<Token> tokens, ReadTokens(options.tokens));
  HEARTH_ASSIGN(const std::string path, ModelPath(options.model));
  HEARTH_ASSIGN(Model model, OpenModelFor(path, options.backend));
  if (options.yarn_truncate) {
    if (model.spec.rope.scaling != RopeScaling::kYarn) {
      return Error(Code::kInvalid, "--yarn-truncate: %s does not use YaRN", options.model.c_str());
    }
    model.spec.rope.yarn_truncate = true;
  }
  ArrayWriter writer(options.out, as_float);
  if (options.backend == "cpu") {
    HEARTH_TRY(EvalOnCpu(model, tokens, options, writer));
    return writer.Close();
  }
  if (!options.dump.empty() && !IsDirectory(options.dump)) {
    return Error(Code::kInvalid, "--dump %s: not a directory", options.dump.c_str());
  }
  Reference reference(model);
  if (!options.dump.empty()) reference.set_observer(DumpInto(options.dump));
  HEARTH_TRY(
      reference.Append(tokens, Reference::Wanted::kEveryRow,
                       [&writer](int, std::span<const double> logits) { writer.Add(logits); }));
  return writer.Close();
}

}  // namespace

void AddEval(CLI::App& app, Command& chosen) {
  CLI::App* eval = app.add_subcommand("eval", "Measure the quality of a model's predictions");
  eval->require_subcommand(1);
  AddPerplexity(*eval, chosen);
  AddCompare(*eval, chosen);
  AddEvalKv(*eval, chosen);
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* logits = eval->add_subcommand(
      "logits",
      "Write the logits after every token to a file: raw little-endian, one row per position");
  logits
      ->add_option("--model", options->model,
                   "Model file or directory, or a name that `hearth list` shows")
      ->required();
  logits->add_option("--tokens", options->tokens, "File of token ids: raw little-endian int32")
      ->required();
  logits
      ->add_option("--out", options->out, "Output file: NAME.f64 for doubles, NAME.f32 for floats")
      ->required();
  logits->add_option("--backend", options->backend, "Compute backend")
      ->check(CLI::IsMember({"reference", "cpu"}))
      ->capture_default_str();
  logits->add_flag("--yarn-truncate", options->yarn_truncate,
                   "Round YaRN's bounds to whole dimension pairs, as llama.cpp does for gpt-oss");
  logits->add_option("--dump", options->dump,
                     "Directory for all named intermediate results (reference backend only)");
  logits->add_option(
      "--isa", options->hardware.isa,
      Printf("Instruction set of the CPU backend: %s; default: the best this CPU has",
             IsaNames().c_str()));
  logits
      ->add_option("--threads", options->hardware.num_threads,
                   "Number of threads of the CPU backend")
      ->check(Between(1, 1024));
  logits
      ->add_option("--chunk", options->chunk,
                   "Tokens per step of the CPU backend; does not change the result")
      ->check(Between(1, 2048))
      ->capture_default_str();
  AddNumerics(*logits, options->hardware.numerics);
  logits->callback([&chosen, options] { chosen = [options] { return EvalLogits(*options); }; });
}

}  // namespace hearth
