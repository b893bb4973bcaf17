find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
target_link_libraries(hearth_app PUBLIC CLI11::CLI11 fmt::fmt)
target_compile_definitions(hearth_app PRIVATE HEARTH_VERSION="${PROJECT_VERSION}")
# Configuration files, by toml++: its headers alone, without exceptions (docs/decisions/0044).
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
target_include_directories(hearth_app SYSTEM PRIVATE ${TOMLPLUSPLUS_INCLUDE_DIR})
target_compile_definitions(hearth_app PRIVATE TOML_EXCEPTIONS=0 TOML_HEADER_ONLY=1)
