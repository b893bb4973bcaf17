# Kernel files are compiled for the instruction set in their name. The tables are reached through
# plain functions after platform/isa.h has said which of them this processor can run.
set(hearth_avx2_flags -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(hearth_avx512_flags ${hearth_avx2_flags} -mavx512f -mavx512bw -mavx512vl -mavx512dq
    -mavx512vnni)
set(hearth_amx_flags ${hearth_avx512_flags} -mavx512vbmi -mamx-tile -mamx-int8 -DHEARTH_VBMI)
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
# Tiles are unrolled whole, and so are products of few tokens: with checks in every step g++ 12 and
# clang need many minutes for a file. What they read and write beyond their rows, kernels_test sees in
# buffers that it compares whole. Fuzz targets feed readers and parsers: there no kernel is checked.
set(hearth_unchecked "kernels_*_tiles*.cc" "kernels_avx512_super.cc" "kernels_amx_blocks.cc")
if(HEARTH_FUZZ)
  set(hearth_unchecked "kernels_a*.cc")
endif()
list(TRANSFORM hearth_unchecked PREPEND ${CMAKE_SOURCE_DIR}/src/cpu/)
file(GLOB hearth_unchecked_files CONFIGURE_DEPENDS ${hearth_unchecked})
list(FILTER hearth_unchecked_files EXCLUDE REGEX "_test\\.cc$")
if(HEARTH_SANITIZE)
  set_property(SOURCE ${hearth_unchecked_files} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
endif()
# Products that gain from instructions of the next level are compiled for it once more (level.inl).
set(hearth_avxvnni_files kernels_avx2_matmul.cc kernels_avx2_blocks.cc kernels_avx2_super.cc
    kernels_avx2_tiles.cc kernels_avx2_tiles_bytes.cc kernels_avx2_tiles_super.cc
    kernels_avx2_attend_int8.cc)
set(hearth_vbmi_files kernels_avx512_matmul.cc kernels_avx512_super.cc)
list(TRANSFORM hearth_avxvnni_files PREPEND ${CMAKE_SOURCE_DIR}/src/cpu/)
list(TRANSFORM hearth_vbmi_files PREPEND ${CMAKE_SOURCE_DIR}/src/cpu/)
add_library(hearth_cpu_avxvnni OBJECT ${hearth_avxvnni_files})
target_compile_options(hearth_cpu_avxvnni PRIVATE -mavxvnni -DHEARTH_VNNI)
add_library(hearth_cpu_vbmi OBJECT ${hearth_vbmi_files})
target_compile_options(hearth_cpu_vbmi PRIVATE -mavx512vbmi -DHEARTH_VBMI)
foreach(again hearth_cpu_avxvnni hearth_cpu_vbmi)
  target_include_directories(${again} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_sources(hearth_cpu PRIVATE $<TARGET_OBJECTS:${again}>)
endforeach()
