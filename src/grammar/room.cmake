include(${CMAKE_SOURCE_DIR}/cmake/rust.cmake)
target_link_libraries(hearth_grammar PRIVATE hearth_rust)
