# What makes a mistake in memory harder to use, in the programs that users run; the gate `hardening`
# looks for it in the result. Builds with sanitizers have better.
#
# Stack: a canary in functions with arrays (protector), no jumping over the guard page (clash).
# -fcf-protection: indirect jumps land on endbr64, and return addresses can be kept a second time; the
# Rust library and Debian's C start-up files are not marked, so the kernel does not enforce it today.
# Linking: addresses are drawn at each start (PIE), the tables of imported functions are bound and
# then read-only (relro, now), and no stack is executable.
# The Rust parts are position-independent and probe their stacks by themselves.
option(HEARTH_HARDEN "Compile and link with cmake/hardening.cmake; off to measure what it costs" ON)
if(HEARTH_HARDEN AND NOT HEARTH_SANITIZE)
  include(CheckPIESupported)
  check_pie_supported()
  add_compile_options(-fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  # The C library's checked copies know the sizes only when the compiler optimises.
  if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT CMAKE_CXX_FLAGS_RELEASE MATCHES "-O0")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
endif()
