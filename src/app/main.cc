// SPDX-License-Identifier: Apache-2.0
// The program: one binary, one subcommand per file app/cmd_*.cc.
#include "app/commands.h"

int main(int argc, char** argv) { return hearth::RunCommandLine(argc, argv); }
