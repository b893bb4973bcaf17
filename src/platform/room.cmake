find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
target_link_libraries(hearth_platform PRIVATE PkgConfig::HWLOC)
