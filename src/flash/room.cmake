# The C API: its header is outside of src/, and programs link one library that has everything in it.
target_include_directories(hearth_flash PUBLIC ${CMAKE_SOURCE_DIR}/include)
add_library(hearth_flash_attention SHARED EXCLUDE_FROM_ALL
            ${CMAKE_SOURCE_DIR}/src/flash/flash_attention_v2_opt.cc)
target_link_libraries(hearth_flash_attention PRIVATE hearth_flash)
target_link_options(hearth_flash_attention PRIVATE -Wl,--exclude-libs,ALL)
