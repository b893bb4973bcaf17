// SPDX-License-Identifier: Apache-2.0
#include "plan/machine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace hearth {
namespace {

constexpr const char* kExample = "for example \"2x8 cores, 2x8ch DDR5-4800, avx512, 256 GB\"";

std::string Lowered(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes a plain decimal number from the front of `text`.
std::optional<double> TakeNumber(std::string_view& text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !(value > 0) || value > 1e6) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// "2x8" or "8", whole numbers.
struct Count {
  int groups = 1, each = 0;
};
std::optional<Count> TakeCount(std::string_view& text) {
  const auto whole = [&]() -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 1 || value > 4096) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  };
  const std::optional<int> first = whole();
  if (!first) return std::nullopt;
  if (text.empty() || text.front() != 'x') return Count{1, *first};
  text.remove_prefix(1);
  const std::optional<int> second = whole();
  if (!second) return std::nullopt;
  return Count{*first, *second};
}

bool ReadCores(std::string_view part, MachineText& machine) {
  const std::optional<Count> count = TakeCount(part);
  part = Trimmed(part);
  if (!count || (part != "cores" && part != "core")) return false;
  machine.sockets = count->groups;
  machine.cores = count->groups * count->each;
  return true;
}

// "2x8ch ddr5-4800": channels of 8 bytes.
bool ReadChannels(std::string_view part, MachineText& machine) {
  const std::optional<Count> count = TakeCount(part);
  part = Trimmed(part);
  if (!count || !part.starts_with("ch")) return false;
  part.remove_prefix(2);
  part = Trimmed(part);
  const size_t dash = part.find('-');
  if (dash == std::string_view::npos || part.substr(0, dash).find("ddr") == std::string_view::npos)
    return false;
  part.remove_prefix(dash + 1);
  const std::optional<double> transfers = TakeNumber(part);
  if (!transfers || *transfers < 100 || !part.empty()) return false;
  machine.memory_rate = count->groups * count->each * *transfers * 1e6 * 8;
  return true;
}

bool ReadQuantity(std::string_view part, MachineText& machine) {
  const std::optional<double> number = TakeNumber(part);
  part = Trimmed(part);
  if (!number) return false;
  if (part == "ghz") {
    machine.clock_hz = *number * 1e9;
  } else if (part == "gb/s") {
    machine.memory_rate = *number * 1e9;
  } else if (part == "gb" || part == "gib") {
    machine.memory_bytes = static_cast<uint64_t>(*number * (1 << 30));
  } else {
    return false;
  }
  return true;
}

bool ReadIsa(std::string_view part, MachineText& machine) {
  for (const char* isa : {"scalar", "avx2", "avxvnni", "avx512vnni", "avx512", "amx"}) {
    if (part != isa) continue;
    machine.isa = part;
    return true;
  }
  return false;
}

}  // namespace

Result<MachineText> ParseMachine(std::string_view text) {
  MachineText machine;
  const std::string lowered = Lowered(text.substr(0, 1000));
  std::string_view rest = lowered;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = Trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(rest.size(), comma + 1));
    if (ReadCores(part, machine) || ReadChannels(part, machine) || ReadQuantity(part, machine) ||
        ReadIsa(part, machine)) {
      continue;
    }
    return Error(Code::kInvalid,
                 "--machine: %s is not understood; expected cores, memory channels or GB/s, an "
                 "instruction set, GB or GHz, %s",
                 Quoted(std::string(part)).c_str(), kExample);
  }
  if (machine.cores == 0) {
    return Error(Code::kInvalid, "--machine: the number of cores is missing, %s", kExample);
  }
  if (machine.memory_rate <= 0) {
    return Error(Code::kInvalid,
                 "--machine: the memory is missing, as channels (\"8ch DDR5-4800\") or a rate "
                 "(\"300 GB/s\")");
  }
  return machine;
}

MachineRates RatesOf(const MachineText& machine, const MachineRates& here, double clock_here) {
  MachineRates rates;
  rates.threads = machine.cores;
  const double cores = static_cast<double>(machine.cores) / here.threads;
  const double clock = machine.clock_hz && clock_here > 0 ? *machine.clock_hz / clock_here : 1.0;
  rates.int8 = here.int8 * cores * clock;
  double label = machine.memory_rate * kShareOfLabel;
  if (machine.sockets > 1) label *= kShareAcrossSockets;
  rates.stream = std::min(label, here.stream * cores);
  return rates;
}

}  // namespace hearth
