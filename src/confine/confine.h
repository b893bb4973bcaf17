// SPDX-License-Identifier: Apache-2.0
// What a server gives up once it knows what it will need: files it never opens, system calls it
// never makes, root's rights, its own memory to other processes. Whoever takes it over by a bug has
// as little.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

enum class FileUse : unsigned char {
  kRead,    // a file, or all below a folder
  kWrite,   // read as well; make, rename and delete below a folder
  kAppend,  // write and make files in a folder, but read nothing there
  kSocket,  // make and delete sockets in a folder
  kList,    // the names in a folder, and in those below it
};

struct FileRule {
  std::string path;
  FileUse use;
};

// From now on this thread, and those that it starts, open nothing but what `rules` name, and start
// no program (Landlock). Paths that do not exist are left out; symbolic links count as what they
// lead to now. What is open stays open. kUnsupported: the kernel has no Landlock, or may not use
// it.
Status RestrictFiles(const std::vector<FileRule>& rules);

struct CallRules {
  bool may_connect = false;  // to other machines and sockets
};

// From now on every thread of this process makes only the system calls that serving needs
// (seccomp); others answer EPERM: a mistake in the list is an error that travels, and a server that
// kills itself helps those who want it down. kUnsupported as above.
Status RestrictCalls(const CallRules& rules);

// The same for the process above a server, which starts it again: what it starts keeps this list,
// so it has all that a server needs to load libraries and models, to listen and to confine itself.
// Neither can trace others, mount, enter namespaces, become another user or load kernel code.
// kUnsupported as above. REQUIRES: no other threads.
Status RestrictSupervisorCalls();

enum class KeptCapabilities : unsigned char {
  kNone,
  kLowPorts,  // to listen on ports below 1024 later
};
// Gives up root's rights, also those that a program started from here could get back (the bounding
// set); to be called while there is one thread, and for kNone again when it was kLowPorts. An
// account that has none does nothing. What stays is that files of root's are root's: those of
// others are had as far as their modes let everybody. kUnsupported when the kernel refuses.
Status DropCapabilities(KeptCapabilities kept);

// Other processes of this user cannot read or trace this one, and its memory goes into no core
// file; it can gain no privileges by starting programs.
Status HideProcess();

}  // namespace hearth
