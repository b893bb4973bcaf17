find_package(CURL REQUIRED)
target_link_libraries(hearth_ask PUBLIC CURL::libcurl)
