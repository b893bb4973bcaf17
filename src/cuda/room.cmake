# The kernels are compiled by nvcc alone (cmake/cuda.cmake) and stand in the program as bytes.
if(HEARTH_NVCC)
  add_dependencies(hearth_cuda cuda_fatbin)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cuda/fatbin.cc PROPERTIES
    OBJECT_DEPENDS ${HEARTH_PTX_DIR}/kernels.fatbin
    COMPILE_DEFINITIONS "HEARTH_CUDA_FATBIN=\"${HEARTH_PTX_DIR}/kernels.fatbin\"")
endif()
