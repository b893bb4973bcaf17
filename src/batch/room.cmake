# Jobs and their results in SQLite.
find_package(SQLite3 REQUIRED)
target_link_libraries(hearth_batch PRIVATE SQLite::SQLite3)
