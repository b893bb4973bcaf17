// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each cmd_*.cc declares its flags on a CLI11 app and says what to run.
#pragma once
#include <functional>

#include "base/result.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

// Parses, runs, prints errors to stderr. 0 = done, 1 = the work failed, 2 = wrong usage.
int RunCommandLine(int argc, char** argv);

// What the chosen subcommand does; set while the line is parsed, run afterwards.
using Command = std::function<Status()>;

// The program's name, version and every command below.
void AddCommands(CLI::App& app, Command& chosen);

void AddInspect(CLI::App& app, Command& chosen);
void AddEval(CLI::App& app, Command& chosen);
void AddPerplexity(CLI::App& eval, Command& chosen);  // of `hearth eval`
void AddCompare(CLI::App& eval, Command& chosen);     // likewise
void AddEvalKv(CLI::App& eval, Command& chosen);      // likewise
void AddRun(CLI::App& app, Command& chosen);
void AddPack(CLI::App& app, Command& chosen);
void AddQuantize(CLI::App& app, Command& chosen);
void AddTokenize(CLI::App& app, Command& chosen);
void AddRender(CLI::App& app, Command& chosen);
void AddBench(CLI::App& app, Command& chosen);
void AddBenchLoad(CLI::App& bench, Command& chosen);  // of `hearth bench`
void AddServe(CLI::App& app, Command& chosen);
void AddPull(CLI::App& app, Command& chosen);
void AddStore(CLI::App& app, Command& chosen);  // list, show and rm
void AddTop(CLI::App& app, Command& chosen);
void AddDoctor(CLI::App& app, Command& chosen);
void AddGpu(CLI::App& app, Command& chosen);
void AddGpuBench(CLI::App& gpu, Command& chosen);  // of `hearth gpu`
void AddCache(CLI::App& app, Command& chosen);
void AddKey(CLI::App& app, Command& chosen);
void AddApiDocs(CLI::App& app, Command& chosen);
void AddConfig(CLI::App& app, Command& chosen);
void AddDocs(CLI::App& app, Command& chosen);

}  // namespace hearth
