// SPDX-License-Identifier: Apache-2.0
// What hearth serve gives up after it has read its flags (root's rights, files) and when it is
// ready (calls), and what the process above it does.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "confine/confine.h"
namespace CLI {
class App;
}
namespace hearth {

enum class ConfineMode : unsigned char {
  kAuto,      // as far as the kernel can; a warning says what it cannot
  kRequired,  // an error then
  kOff        // for debuggers and profilers
};

// What the flags name; empty: none.
struct ServePaths {
  std::vector<std::string> models = {};   // files or folders that are loaded
  std::vector<std::string> folders = {};  // to be read, with all below: where more models are
  std::vector<std::string> state = {};    // to be read and written, with all below
  std::string keys = {}, certificate = {}, private_key = {}, responses = {}, log = {};
  std::string unix_socket = {}, batches = {};
};

// The flag --confine.
void AddConfine(CLI::App& sub, ConfineMode& mode);

// Pure but for looking up what is where.
std::vector<FileRule> ServeFileRules(const ServePaths& paths);

// Before keys are read; also what supervises the server.
Status HideServer(ConfineMode mode);
// The process above the server, whose sockets are open: root's rights and system calls. What it
// starts has no more.
Status ConfineSupervisor(ConfineMode mode);
// Before any thread is started: a thread keeps what it was born with. Root's rights go, too; one
// that will listen on a port below 1024 itself keeps that one until ConfineCalls.
Status ConfineFiles(ConfineMode mode, const ServePaths& paths, bool opens_low_port = false);
// When all is open and the model is loaded.
Status ConfineCalls(ConfineMode mode, const CallRules& rules = {});

// With a hint if a file was refused to root because it gave up root's rights.
Status ExplainRefusedFile(ConfineMode mode, Status failed);

}  // namespace hearth
