// SPDX-License-Identifier: Apache-2.0
// The lists of system calls that serving needs, and the process above it, as programs for the
// kernel's filter (BPF). Pure.
#pragma once
#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "confine/confine.h"
namespace hearth {

// `self`: the process that may signal itself and nobody else. Empty on processors other than
// x86-64, whose calls have other numbers.
std::vector<sock_filter> CallFilter(const CallRules& rules, pid_t self);

// As RestrictSupervisorCalls says.
std::vector<sock_filter> SupervisorCallFilter();

}  // namespace hearth
