// SPDX-License-Identifier: Apache-2.0
#include "fibers.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a called function must preserve, changes stacks, restores.
extern "C" void hearth_switch_stack(void** save, void* load);
asm(R"(
.text
.globl hearth_switch_stack
.type hearth_switch_stack, @function
hearth_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hearth_switch_stack, .-hearth_switch_stack
)");

namespace hearth::cuda {
namespace {

Fiber::Body starting = nullptr;

#ifdef __SANITIZE_ADDRESS__
void StartSwitch(void** fake, const void* bottom, size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
void FinishSwitch(void* fake, const void** bottom, size_t* size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
void StartSwitch(void**, const void*, size_t) {}
void FinishSwitch(void*, const void**, size_t*) {}
#endif

// Where a new fiber begins.
const void** new_bottom = nullptr;
size_t* new_size = nullptr;
void Enter() {
  FinishSwitch(nullptr, new_bottom, new_size);
  starting();
  __builtin_trap();
}

}  // namespace

Fiber::Fiber() : stack_(std::make_unique_for_overwrite<uint8_t[]>(kStackBytes)) {}

void Fiber::Start(Body body) {
  auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes) & ~uintptr_t{15};
  auto** slot = reinterpret_cast<void**>(top);
  *--slot = nullptr;  // Enter's return address, never used; keeps the stack aligned
  *--slot = reinterpret_cast<void*>(&Enter);
  for (int i = 0; i < 6; ++i) *--slot = nullptr;
  own_ = slot;
  fake_own_ = nullptr;
  is_new_ = true;
  starting = body;
}

void Fiber::Resume() {
  if (is_new_) {
    new_bottom = &outside_bottom_;
    new_size = &outside_size_;
    is_new_ = false;
  }
  StartSwitch(&fake_outside_, stack_.get(), kStackBytes);
  hearth_switch_stack(&outside_, own_);
  FinishSwitch(fake_outside_, nullptr, nullptr);
}

void Fiber::Leave(bool for_good) {
  StartSwitch(for_good ? nullptr : &fake_own_, outside_bottom_, outside_size_);
  hearth_switch_stack(&own_, outside_);
  FinishSwitch(fake_own_, &outside_bottom_, &outside_size_);
}

}  // namespace hearth::cuda
