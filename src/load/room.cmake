find_package(fmt REQUIRED)
find_package(CURL REQUIRED)  # a server that is somewhere else
target_link_libraries(hearth_load PUBLIC fmt::fmt CURL::libcurl)
