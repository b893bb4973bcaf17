// SPDX-License-Identifier: Apache-2.0
#include "ptx_module.h"

#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>

#include "machine.h"

namespace hearth::cuda {
namespace {

[[noreturn]] void Die(const std::string& why) { Refuse("PTX", why); }

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// At commas outside of braces and brackets.
std::vector<std::string> SplitOperands(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = Trimmed(part);
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

// One kernel's body, statement by statement.
class BodyReader {
 public:
  explicit BodyReader(PtxKernel& kernel) : kernel_(kernel) {}

  void Read(const std::string& body) {
    std::string statement;
    for (const char c : body) {
      if (c == ':' && statement.find('"') == std::string::npos && IsLabel(Trimmed(statement))) {
        labels_[Trimmed(statement)] = static_cast<int>(kernel_.code.size());
        statement.clear();
      } else if (c == ';') {
        ReadStatement(Trimmed(statement));
        statement.clear();
      } else {
        statement += c;
      }
    }
    if (!Trimmed(statement).empty()) Die("text after the last statement: " + Trimmed(statement));
    for (auto& [index, label] : branches_) {
      if (labels_.find(label) == labels_.end()) Die("no label " + label);
      kernel_.code[static_cast<size_t>(index)].target = labels_[label];
    }
    kernel_.num_registers = static_cast<int>(registers_.size());
  }

 private:
  static bool IsLabel(const std::string& text) {
    return !text.empty() && text[0] == '$' && text.find(' ') == std::string::npos;
  }

  int Register(const std::string& name) {
    return registers_.emplace(name, static_cast<int>(registers_.size())).first->second;
  }

  PtxOperand Special(const std::string& text) {
    const bool is_thread = StartsWith(text, "%tid.");
    PtxOperand operand;
    operand.kind = is_thread ? PtxOperand::Kind::kThread : PtxOperand::Kind::kBlock;
    operand.index = text.back() - 'x';
    return operand;
  }

  PtxOperand Operand(const std::string& text) {
    if (StartsWith(text, "%tid.") || StartsWith(text, "%ctaid.")) return Special(text);
    PtxOperand operand;
    if (text[0] == '%') {
      operand.kind = PtxOperand::Kind::kRegister;
      operand.index = Register(text);
    } else if (StartsWith(text, "0f")) {
      operand.number = std::strtoull(text.c_str() + 2, nullptr, 16);
    } else if (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-') {
      operand.number = static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 0));
    } else if (!StartsWith(text, kernel_.name + "_param_0") &&
               text.find("hearth_shared") == std::string::npos) {
      Die("unknown name " + text);
    }  // parameters and shared memory start at address 0 of their spaces
    return operand;
  }

  // "[%rd1+8]", "[name+8]" or "[name]".
  PtxOperand Address(const std::string& text) {
    const std::string inside = Trimmed(text.substr(1, text.size() - 2));
    const size_t plus = inside.find('+');
    PtxOperand operand = Operand(Trimmed(inside.substr(0, plus)));
    if (plus != std::string::npos) {
      operand.number = static_cast<uint64_t>(std::strtoll(inside.c_str() + plus + 1, nullptr, 0));
    } else if (operand.kind == PtxOperand::Kind::kRegister) {
      operand.number = 0;
    }
    return operand;
  }

  std::vector<std::string> Elements(const std::string& text) {
    if (text[0] != '{') return {text};
    return SplitOperands(text.substr(1, text.size() - 2));
  }
  void AddTo(PtxInstruction& out, const std::string& text) {
    for (const std::string& part : Elements(text))
      out.to.push_back(Register(part.substr(0, part.find('|'))));
  }
  void AddFrom(PtxInstruction& out, const std::string& text) {
    for (const std::string& part : Elements(text)) {
      out.from.push_back(part[0] == '[' ? Address(part) : Operand(part));
    }
  }

  void ReadStatement(const std::string& text) {
    if (text.empty() || StartsWith(text, ".reg") || StartsWith(text, ".pragma")) return;
    PtxInstruction out;
    out.text = text;
    std::string rest = text;
    if (rest[0] == '@') {
      const size_t space = rest.find_first_of(" \t");
      out.is_guard_negated = rest[1] == '!';
      out.guard = Register(
          rest.substr(out.is_guard_negated ? 2 : 1, space - (out.is_guard_negated ? 2 : 1)));
      rest = Trimmed(rest.substr(space));
    }
    const size_t space = rest.find_first_of(" \t");
    const std::string opcode = rest.substr(0, space);
    const auto operands = SplitOperands(space == std::string::npos ? "" : rest.substr(space));
    out.opcode = opcode;
    Decode(opcode, operands, out);
    kernel_.code.push_back(std::move(out));
  }

  void Decode(const std::string& opcode, const std::vector<std::string>& operands,
              PtxInstruction& out) {
    out.alu = FindAlu(opcode);
    const bool is_mov = opcode == "mov.b64" || opcode == "mov.b32";
    if (is_mov && (operands[0][0] == '{' || operands[1][0] == '{')) {
      out.bytes = opcode == "mov.b64" ? 4 : 2;
      out.kind = operands[0][0] == '{' ? PtxKind::kUnpack : PtxKind::kPack;
      AddTo(out, operands[0]);
      AddFrom(out, operands[1]);
      if (out.to.size() + out.from.size() != 3) Die("not a pair: " + out.text);
    } else if (out.alu.function != nullptr) {
      if (static_cast<int>(operands.size()) != out.alu.num_operands + 1)
        Die("operands of " + out.text);
      AddTo(out, operands[0]);
      for (size_t i = 1; i < operands.size(); ++i) AddFrom(out, operands[i]);
      if (out.to.size() != 1 || out.from.size() + 1 != operands.size())
        Die("vectors in " + out.text);
    } else if (StartsWith(opcode, "ld.") || StartsWith(opcode, "st.")) {
      DecodeMemory(opcode, operands, out);
    } else if (opcode == "bra" || opcode == "bra.uni") {
      out.kind = PtxKind::kBranch;
      branches_[static_cast<int>(kernel_.code.size())] = operands[0];
    } else if (opcode == "ret") {
      out.kind = PtxKind::kReturn;
    } else if (opcode == "bar.sync" && operands == std::vector<std::string>{"0"}) {
      out.kind = PtxKind::kBarrier;
    } else if (opcode == "cp.async.commit_group") {
      out.kind = PtxKind::kCopyCommit;
    } else {
      DecodeRare(opcode, operands, out);
    }
  }

  void DecodeRare(const std::string& opcode, const std::vector<std::string>& operands,
                  PtxInstruction& out) {
    size_t num_to = 1;
    if (opcode == "shfl.sync.bfly.b32") {
      out.kind = PtxKind::kShuffle;
    } else if (opcode == "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32") {
      out.kind = PtxKind::kMma16832;
    } else if (opcode == "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32") {
      out.kind = PtxKind::kMma8816;
    } else if (opcode == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" ||
               opcode == "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32") {
      out.kind = PtxKind::kMmaHalf;
    } else if (opcode == "atom.shared.add.u32" || opcode == "atom.shared.add.s32") {
      out.kind = PtxKind::kAtomicAdd;
    } else if (opcode == "atom.acq_rel.gpu.global.add.s32" ||
               opcode == "atom.relaxed.gpu.global.add.s32") {
      out.kind = PtxKind::kArrive;
      out.orders = opcode == "atom.acq_rel.gpu.global.add.s32";
    } else if (opcode == "cp.async.cg.shared.global") {
      out.kind = PtxKind::kCopyAsync;
      num_to = 0;
    } else if (opcode == "cp.async.wait_group") {
      out.kind = PtxKind::kCopyWait;
      num_to = 0;
    } else {
      Die("unknown instruction " + out.text);
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i < num_to) {
        AddTo(out, operands[i]);
      } else {
        AddFrom(out, operands[i]);
      }
    }
  }

  void DecodeMemory(const std::string& opcode, const std::vector<std::string>& operands,
                    PtxInstruction& out) {
    static const std::set<std::string> kIgnored = {"nc", "L1::no_allocate", "v2", "v4"};
    std::stringstream words(opcode);
    std::string word, type;
    std::getline(words, word, '.');
    out.kind = word == "ld" ? PtxKind::kLoad : PtxKind::kStore;
    while (std::getline(words, word, '.')) {
      if (word == "global")
        out.space = PtxSpace::kGlobal;
      else if (word == "shared")
        out.space = PtxSpace::kShared;
      else if (word == "param")
        out.space = PtxSpace::kParam;
      else if (kIgnored.count(word) == 0)
        type += word;
    }
    if (type.size() < 2 || std::string("subf").find(type[0]) == std::string::npos ||
        std::set<std::string>{"8", "16", "32", "64"}.count(type.substr(1)) == 0) {
      Die("unknown kind of access " + out.text);
    }
    out.bytes = std::atoi(type.c_str() + 1) / 8;
    out.is_stream = opcode.find("no_allocate") != std::string::npos;
    out.extends = type[0] == 's';
    if (out.kind == PtxKind::kLoad) AddTo(out, operands[0]);
    AddFrom(out, operands[out.kind == PtxKind::kLoad ? 1 : 0]);
    if (out.kind == PtxKind::kStore) AddFrom(out, operands[1]);
  }

  PtxKernel& kernel_;
  std::map<std::string, int> registers_, labels_;
  std::map<int, std::string> branches_;
};

}  // namespace

PtxModule::PtxModule(const std::string& text) {
  std::stringstream lines(text);
  std::string line, body, head;
  PtxKernel* kernel = nullptr;
  bool is_inside = false;
  while (std::getline(lines, line)) {
    line = Trimmed(line.substr(0, line.find("//")));
    const size_t entry = line.find(".entry ");
    if (entry != std::string::npos) {
      const std::string name = Trimmed(line.substr(entry + 7, line.find('(') - entry - 7));
      kernel = &kernels_[name];
      kernel->name = name;
      body.clear();
    } else if (kernel != nullptr && !is_inside && StartsWith(line, ".param")) {
      kernel->param_bytes = static_cast<size_t>(std::atoi(line.c_str() + line.find('[') + 1));
    } else if (kernel != nullptr && line == "{" && !is_inside) {
      is_inside = true;
    } else if (is_inside && line == "}") {
      BodyReader(*kernel).Read(body);
      kernel = nullptr;
      is_inside = false;
    } else if (is_inside) {
      body += line + "\n";
    }
  }
  if (kernels_.empty()) Die("no kernels in this text");
}

const PtxKernel& PtxModule::kernel(const std::string& name) const {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) Die("no kernel named " + name);
  return found->second;
}

}  // namespace hearth::cuda
