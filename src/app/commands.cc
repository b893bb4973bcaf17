// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <system_error>

#include "app/cmd_fleet.h"
#include "app/cmd_plan.h"
#include "app/config.h"
#include "app/usage_mistake.h"
#include "base/terminal.h"
#include "cuda/fatbin.h"
#include "platform/topology.h"
#include "server/ui/page_files.h"
#include "supervise/worker_seat.h"

namespace hearth {
namespace {

int Fail(const std::string& message) {
  PrintError("hearth: %s\n", message.c_str());
  return 1;
}

int FailToUnderstand(const std::string& what) {
  PrintError("hearth: %s\nRun with --help for more information.\n", what.c_str());
  return 2;
}

// A wrong configuration is wrong usage, which a service manager need not try again.
int FailToConfigure(const ConfigOutcome& configured) {
  PrintError("hearth: %s\n", configured.status.message().c_str());
  return 2;
}

}  // namespace

void AddCommands(CLI::App& app, Command& chosen) {
  app.description("Run and serve language models on x86 CPUs.");
  app.name("hearth");
  const char* without = PageFiles().empty() ? " (without the web page)" : "";
  app.set_version_flag("--version", std::string("hearth " HEARTH_VERSION) + without + "\n" +
                                        std::string(cuda::AboutKernels()));
  app.require_subcommand(1);
  // In the order in which a newcomer meets them.
  AddPull(app, chosen);
  AddRun(app, chosen);
  AddServe(app, chosen);
  AddStore(app, chosen);
  AddTop(app, chosen);
  AddDoctor(app, chosen);
  AddGpu(app, chosen);
  AddPlan(app, chosen);
  AddInspect(app, chosen);
  AddConfig(app, chosen);
  AddKey(app, chosen);
  AddFleet(app, chosen);
  AddCache(app, chosen);
  AddPack(app, chosen);
  AddQuantize(app, chosen);
  AddBench(app, chosen);
  AddTokenize(app, chosen);
  AddRender(app, chosen);
  AddEval(app, chosen);
  AddApiDocs(app, chosen);
  AddDocs(app, chosen);
  // Last: commands that are added later would show it too.
  app.footer(
      "Begin with `hearth pull smollm2` and `hearth run smollm2`; `hearth pull` alone lists the "
      "models.\n`hearth COMMAND --help` lists a command's flags.");
}

namespace {

int Run(int argc, char** argv) {
  CLI::App app;
  Command chosen;
  AddCommands(app, chosen);
  const std::shared_ptr<const ConfigOutcome> configured = AddConfiguration(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && !configured->status.ok()) return FailToConfigure(*configured);
    const std::string what =
        error.get_exit_code() == 0 ? "" : UnknownWord(app, argc > 1 ? argv[1] : "");
    if (!what.empty()) return FailToUnderstand(what);
    if (error.get_exit_code() != 0) return FailToUnderstand(InPlainWords(error.what()));
    return app.exit(error);
  }
  if (!configured->status.ok()) return FailToConfigure(*configured);
  for (const std::string& warning : configured->warnings) {
    if (WorkerSeat::IsOffered()) break;  // the supervisor has said it
    PrintError("warning: %s\n", warning.c_str());
  }
  const Status status = chosen();
  if (!status.ok()) return Fail(status.message());
  return 0;
}

// Says how much there was: whoever set a limit knows it by its number.
int FailForMemory(const char* what) {
  const Topology machine = ReadTopology();
  return Fail(
      Printf("%s: this process may hold %.0f MiB%s", what,
             static_cast<double>(machine.usable_memory_bytes()) / (1 << 20),
             machine.memory_limit_bytes ? ", by the limit of its address space or cgroup" : ""));
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return FailForMemory("out of memory");
  } catch (const std::system_error&) {  // what threads throw
    return FailForMemory("the system refuses another thread");
  }
}

}  // namespace hearth
