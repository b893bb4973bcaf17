# Debian's RocksDB has a pkg-config file; its CMake package asks for libraries that only static linking needs.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ROCKSDB REQUIRED IMPORTED_TARGET rocksdb)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
find_package(OpenSSL REQUIRED)
target_link_libraries(hearth_tiers PUBLIC Threads::Threads OpenSSL::SSL
                      PRIVATE PkgConfig::ROCKSDB PkgConfig::HIREDIS)
