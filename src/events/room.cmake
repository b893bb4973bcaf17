# Cached blocks over ZeroMQ, for routers.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
target_link_libraries(hearth_events PUBLIC Threads::Threads PRIVATE PkgConfig::ZMQ)
