find_package(fmt REQUIRED)
target_link_libraries(hearth_load PUBLIC fmt::fmt)
