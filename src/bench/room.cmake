find_package(fmt REQUIRED)
target_link_libraries(hearth_bench PUBLIC fmt::fmt)
