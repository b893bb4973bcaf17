// SPDX-License-Identifier: Apache-2.0
// Signals as a chat hears them: Ctrl-C stops what is under way, others end the chat in good order.
#pragma once
#include <atomic>
namespace hearth {

// From now on SIGINT, SIGTERM, SIGHUP, SIGWINCH and SIGCONT are heard here. Once.
void CatchInterrupts();

// Set by Ctrl-C and by whatever ends the chat; who waits for a new one clears it.
std::atomic<bool>& Interrupted();
// The chat shall end: SIGTERM or SIGHUP came. Stays so.
bool IsEndAsked();
// Readable when something came, so that poll wakes up; -1 before CatchInterrupts.
int InterruptFd();

struct TerminalNews {
  bool is_resized = false, is_continued = false;
};
// What came since it was last asked; makes InterruptFd quiet again.
TerminalNews TakeTerminalNews();

}  // namespace hearth
