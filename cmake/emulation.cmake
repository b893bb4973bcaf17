# HEARTH_EMULATES: whether tests of kernels run with functions in place of instructions that this
# machine lacks (tests/emulated).
set(HEARTH_EMULATE AUTO CACHE STRING "Emulate kernels: ON, OFF, or AUTO for machines without AMX")
set(HEARTH_EMULATES ${HEARTH_EMULATE})
if(HEARTH_EMULATES STREQUAL AUTO)
  file(STRINGS /proc/cpuinfo has_amx REGEX "^flags.* amx_int8" LIMIT_COUNT 1)
  file(STRINGS /proc/cpuinfo has_vnni REGEX "^flags.* avx512_vnni" LIMIT_COUNT 1)
  set(HEARTH_EMULATES OFF)
  if(has_vnni AND NOT has_amx)
    set(HEARTH_EMULATES ON)
  endif()
endif()
