// SPDX-License-Identifier: Apache-2.0
// What a benchmark measures and what it found, as data: the table, the JSON file and the report are
// three ways to show the same record.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/costs.h"
namespace hearth {

enum class BenchKind : unsigned char {
  kPrefill,  // one sequence, `tokens` tokens from position 0 on, logits of the last
  kDecode,   // `sequences` of them, `tokens` steps each, after `depth` tokens of context
};
struct BenchCase {
  BenchKind kind = BenchKind::kDecode;
  int sequences = 1, depth = 0, tokens = 16;
};
std::string NameOf(const BenchCase& what);   // "decode 32", "prefill 512", "decode 1 at 8192"
int64_t TotalTokens(const BenchCase& what);  // over all sequences

// The least a case must read and compute.
struct Work {
  double bytes = 0, flops = 0;
};

struct BenchSample {
  double value = 0;   // seconds, or a roofline's rate
  double others = 0;  // share of the machine that others used meanwhile
};
// Seconds are best when least, rates when most.
struct Samples {
  std::vector<BenchSample> all;
  bool less_is_better = true;
  double best() const;
  double worst() const;
  double median() const;
  // How far the worst lies from the best, as a share of the best.
  double spread() const;
};

// One phase of all steps of a case.
struct PhaseFigure {
  std::string name;     // "projections"
  double seconds = 0;   // by the wall clock
  double waiting = 0;   // of those, how long a worker was idle on average
  double alone = 0;     // how long the calling thread worked alone
  Work work;            // of experts what was really read
  bool is_work = true;  // or activations only, which `work` does not count
};
struct Profile {
  int64_t steps = 0;
  std::vector<PhaseFigure> phases;
  PhaseFigure total() const;
};

struct Measurement {
  BenchCase what;
  Work work;
  std::optional<Profile> profile;  // of the best round, with --phases
  Samples seconds{.all = {}, .less_is_better = true};
  bool copied_context = false;  // the context beyond its start was copied, not computed
  double tokens_per_second() const {
    return static_cast<double>(TotalTokens(what)) / seconds.best();
  }
  double bytes_per_second() const { return work.bytes / seconds.best(); }
  double flops_per_second() const { return work.flops / seconds.best(); }
};

struct Roofline {
  std::string name, unit;  // "plain read", "B/s"
  Samples rates{.all = {}, .less_is_better = false};
  bool absent = false;  // this machine cannot
};
// In this order in BenchRecord::rooflines.
enum RooflineIndex : unsigned char { kPlainRead, kStreamRead, kVnniPeak, kAmxPeak, kNumRooflines };

struct BenchedModel {
  std::string path, name, family;
  int64_t file_bytes = 0;
  ModelCosts costs;
  double load_seconds = 0, first_token_seconds = 0;
  // Of the process, after every case ran once and before the rooflines took their buffer.
  int64_t peak_resident = 0, kv_bytes = 0;
  std::vector<Measurement> measurements;
};

struct BenchRecord {
  std::string date, version, processor, isa, numerics;
  int num_threads = 0, num_cpus = 0, num_cores = 0, num_numa_nodes = 0, rounds = 0, chunk = 0;
  uint64_t memory_bytes = 0;
  std::vector<Roofline> rooflines;
  double others = 0;  // over the whole run
  std::optional<BenchedModel> model;

  // The best rate, or 0 when the machine cannot.
  double roofline(RooflineIndex which) const;
};

}  // namespace hearth
