find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(CURL REQUIRED)  # bench load --url
target_link_libraries(hearth_app PUBLIC CLI11::CLI11 fmt::fmt CURL::libcurl)
target_compile_definitions(hearth_app PRIVATE HEARTH_VERSION="${PROJECT_VERSION}")
