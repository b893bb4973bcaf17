// SPDX-License-Identifier: Apache-2.0
#include "bench/output.h"

#include <fmt/format.h>

#include "bench/phases.h"

namespace hearth {
namespace {

constexpr double kGib = 1 << 30;

std::string Percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// A share of something the machine may not have.
std::string ShareOf(double value, double whole) {
  return whole > 0 ? Percent(value / whole) : std::string("-");
}

std::string RooflineLines(const BenchRecord& record) {
  std::string out = fmt::format("{:<20} {:>12} {:>9}\n", "roofline", "best", "spread");
  for (const Roofline& roofline : record.rooflines) {
    if (roofline.absent) {
      out += fmt::format("{:<20} {:>12}  this machine lacks the instructions\n", roofline.name,
                         "ABSENT");
      continue;
    }
    out += fmt::format("{:<20} {:>12} {:>9}\n", roofline.name,
                       WithPrefix(roofline.rates.best(), roofline.unit.c_str()),
                       Percent(roofline.rates.spread()));
  }
  return out;
}

std::string MeasurementLines(const BenchRecord& record) {
  std::string out =
      fmt::format("{:<20} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8}\n", "case", "tokens/s",
                  "spread", "GB/s", "of plain", "of stream", "GFLOP/s", "of AMX");
  bool copied = false;
  for (const Measurement& m : record.model->measurements) {
    out += fmt::format("{:<20} {:>9.4g} {:>8} {:>9.1f} {:>9} {:>9} {:>9.0f} {:>8}\n",
                       NameOf(m.what) + (m.copied_context ? " *" : ""), m.tokens_per_second(),
                       Percent(m.seconds.spread()), m.bytes_per_second() * 1e-9,
                       ShareOf(m.bytes_per_second(), record.roofline(kPlainRead)),
                       ShareOf(m.bytes_per_second(), record.roofline(kStreamRead)),
                       m.flops_per_second() * 1e-9,
                       ShareOf(m.flops_per_second(), record.roofline(kAmxPeak)));
    copied = copied || m.copied_context;
  }
  if (copied) {
    out += fmt::format("* context filled by copying the blocks of its first {} tokens\n",
                       record.chunk);
  }
  return out;
}

Json SamplesJson(const Samples& samples, const char* field) {
  JsonArray all;
  for (const BenchSample& sample : samples.all) {
    all.push_back(JsonObject{{field, sample.value}, {"others", sample.others}});
  }
  return all;
}

Json RooflineJson(const Roofline& roofline) {
  JsonObject out{{"name", roofline.name}, {"unit", roofline.unit}};
  if (roofline.absent) {
    out.emplace_back("absent", true);
    return out;
  }
  out.emplace_back("best", roofline.rates.best());
  out.emplace_back("spread", roofline.rates.spread());
  out.emplace_back("samples", SamplesJson(roofline.rates, "rate"));
  return out;
}

Json MeasurementJson(const Measurement& m) {
  JsonObject out{{"name", NameOf(m.what)},
                 {"kind", m.what.kind == BenchKind::kPrefill ? "prefill" : "decode"},
                 {"sequences", m.what.sequences},
                 {"depth", m.what.depth},
                 {"tokens", TotalTokens(m.what)},
                 {"steps", m.what.kind == BenchKind::kPrefill ? 1 : m.what.tokens},
                 {"context", m.what.depth == 0  ? "none"
                             : m.copied_context ? "copied"
                                                : "computed"},
                 {"seconds", m.seconds.best()},
                 {"spread", m.seconds.spread()},
                 {"tokens_per_second", m.tokens_per_second()},
                 {"bytes", m.work.bytes},
                 {"flops", m.work.flops},
                 {"samples", SamplesJson(m.seconds, "seconds")}};
  if (m.profile) out.emplace_back("profile", ProfileJson(*m.profile));
  return out;
}

Json ModelJson(const BenchedModel& model) {
  return JsonObject{{"name", model.name},
                    {"family", model.family},
                    {"parameters", model.costs.parameters},
                    {"active_parameters", model.costs.active_parameters},
                    {"weight_bytes", model.costs.weight_bytes},
                    {"decode_bytes", model.costs.decode_bytes},
                    {"kv_bytes", model.kv_bytes},
                    {"load_seconds", model.load_seconds},
                    {"first_token_seconds", model.first_token_seconds},
                    {"peak_resident_bytes", model.peak_resident}};
}

}  // namespace

std::string WithPrefix(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  while (value >= 1000 && step + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[step], unit);
}

std::string BenchTable(const BenchRecord& record) {
  std::string out;
  if (record.model) {
    const BenchedModel& model = *record.model;
    out += fmt::format("{}: {:.2f} GB of weights, {:.2f} GB read per decoded token\n", model.name,
                       static_cast<double>(model.costs.weight_bytes) * 1e-9,
                       static_cast<double>(model.costs.decode_bytes) * 1e-9);
  }
  out += fmt::format("{}, {} threads; best of {} interleaved rounds; others used {}\n\n",
                     record.isa, record.num_threads, record.rounds, Percent(record.others));
  out += RooflineLines(record);
  if (!record.model) return out;
  const BenchedModel& model = *record.model;
  out += "\n" + MeasurementLines(record) + PhaseLines(record);
  const auto held = static_cast<double>(model.costs.weight_bytes + model.kv_bytes);
  out += fmt::format(
      "\nload {:.2f} s, first token after {:.2f} s, peak resident {:.2f} GiB ({:.3f} x weights and "
      "KV)\n",
      model.load_seconds, model.first_token_seconds,
      static_cast<double>(model.peak_resident) / kGib,
      static_cast<double>(model.peak_resident) / held);
  return out;
}

Json BenchJson(const BenchRecord& record) {
  JsonArray rooflines;
  for (const Roofline& roofline : record.rooflines) {
    rooflines.push_back(RooflineJson(roofline));
  }
  JsonObject out{{"schema", "hearth.bench"},
                 {"version", 1},
                 {"hearth", record.version},
                 {"date", record.date},
                 {"machine", JsonObject{{"processor", record.processor},
                                        {"isa", record.isa},
                                        {"numerics", record.numerics},
                                        {"threads", record.num_threads},
                                        {"cpus", record.num_cpus},
                                        {"cores", record.num_cores},
                                        {"numa_nodes", record.num_numa_nodes},
                                        {"memory_bytes", record.memory_bytes}}},
                 {"rounds", record.rounds},
                 {"chunk", record.chunk},
                 {"others", record.others},
                 {"yardsticks", std::move(rooflines)}};
  if (record.model) {
    JsonArray measurements;
    for (const Measurement& m : record.model->measurements) {
      measurements.push_back(MeasurementJson(m));
    }
    out.emplace_back("model", ModelJson(*record.model));
    out.emplace_back("measurements", std::move(measurements));
  }
  return out;
}

}  // namespace hearth
