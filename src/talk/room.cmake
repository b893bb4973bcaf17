find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBEDIT REQUIRED IMPORTED_TARGET libedit)
target_link_libraries(hearth_talk PUBLIC PkgConfig::LIBEDIT)
