find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
target_link_libraries(hearth_app PUBLIC CLI11::CLI11 fmt::fmt)
target_compile_definitions(hearth_app PRIVATE HEARTH_VERSION="${PROJECT_VERSION}")
