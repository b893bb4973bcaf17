# The CUDA kernels: one fatbin for all architectures, made and judged by tools/cuda_build.py, when nvcc
# is there (./dev setup cuda). Without it the program is built without CUDA, and --version says so.
set(HEARTH_CUDA AUTO CACHE STRING "CUDA kernels: ON, OFF, or AUTO for when nvcc is found")
set(HEARTH_PTX_DIR ${CMAKE_BINARY_DIR}/cuda)
set(HEARTH_NVCC "")
if(NOT HEARTH_CUDA STREQUAL OFF)
  set(work $ENV{HEARTH_WORK})
  if(NOT work)
    set(work $ENV{HOME}/.cache/hearth)
  endif()
  file(GLOB HEARTH_NVCC ${work}/cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
  if(NOT HEARTH_NVCC AND HEARTH_CUDA STREQUAL ON)
    message(FATAL_ERROR "HEARTH_CUDA is ON, but there is no nvcc: run ./dev setup cuda")
  endif()
endif()
if(HEARTH_NVCC)
  message(STATUS "CUDA kernels: with ${HEARTH_NVCC}")
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cuda/*.h
       ${CMAKE_SOURCE_DIR}/src/cuda/*.cu ${CMAKE_SOURCE_DIR}/src/cuda/budget.txt)
  find_program(HEARTH_PYTHON3 python3 REQUIRED)
  add_custom_command(
    OUTPUT ${HEARTH_PTX_DIR}/kernels.fatbin
    COMMAND ${HEARTH_PYTHON3} ${CMAKE_SOURCE_DIR}/tools/cuda_build.py --nvcc ${HEARTH_NVCC}
            --source ${CMAKE_SOURCE_DIR} --out ${HEARTH_PTX_DIR}
    DEPENDS ${cuda_sources} ${CMAKE_SOURCE_DIR}/tools/cuda_build.py
    COMMENT "CUDA kernels for all architectures")
  add_custom_target(cuda_fatbin DEPENDS ${HEARTH_PTX_DIR}/kernels.fatbin)
else()
  # What an earlier build with nvcc left must not be taken for these kernels.
  set(HEARTH_PTX_DIR ${CMAKE_BINARY_DIR}/cuda-none)
  message(STATUS "CUDA kernels: none, there is no nvcc (./dev setup cuda)")
endif()
