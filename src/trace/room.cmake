find_package(Threads REQUIRED)
target_link_libraries(hearth_trace PUBLIC Threads::Threads)
