# Headers alone: the libraries are loaded when they are first used, and linked by nothing.
find_package(CURL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBPQ REQUIRED libpq)
pkg_check_modules(ZMQ REQUIRED libzmq)
target_include_directories(hearth_late SYSTEM PUBLIC ${CURL_INCLUDE_DIRS} ${LIBPQ_INCLUDE_DIRS}
                           ${ZMQ_INCLUDE_DIRS})
target_link_libraries(hearth_late PUBLIC ${CMAKE_DL_LIBS})
