# Cached blocks over ZeroMQ, for routers; the library by the room late.
find_package(Threads REQUIRED)
target_link_libraries(hearth_events PUBLIC Threads::Threads)
