find_package(CURL REQUIRED)
find_package(Threads REQUIRED)
target_link_libraries(hearth_trace PUBLIC CURL::libcurl Threads::Threads)
