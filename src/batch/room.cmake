# Jobs and their results in SQLite, or in PostgreSQL by the room late.
find_package(SQLite3 REQUIRED)
target_link_libraries(hearth_batch PRIVATE SQLite::SQLite3)
