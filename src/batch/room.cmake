# Jobs and their results in SQLite, or in PostgreSQL.
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBPQ REQUIRED IMPORTED_TARGET libpq)
target_link_libraries(hearth_batch PRIVATE SQLite::SQLite3 PkgConfig::LIBPQ)
