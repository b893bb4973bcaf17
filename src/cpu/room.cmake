# One kernel file per instruction set, each compiled for it alone. The tables are reached through
# plain functions after platform/isa.h has said which of them this processor can run.
set(hearth_avx2_flags -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(hearth_avx512_flags ${hearth_avx2_flags} -mavx512f -mavx512bw -mavx512vl -mavx512dq
    -mavx512vbmi -mavx512vnni)
set(hearth_amx_flags ${hearth_avx512_flags} -mamx-tile -mamx-int8)
# g++ 12's own AVX-512 headers read an undefined vector on purpose and warn about it (GCC 105593).
set(hearth_kernel_warnings "")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(hearth_kernel_warnings -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
foreach(isa avx2 avx512 amx)
  file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cpu/kernels_${isa}*.cc)
  list(FILTER kernel_sources EXCLUDE REGEX "_test\\.cc$")
  set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS
                              "${hearth_${isa}_flags};${hearth_kernel_warnings};-fno-exceptions;-fno-rtti")
endforeach()
