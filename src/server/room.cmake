# Hashes of keys through OpenSSL, metrics through prometheus-cpp, stored responses in SQLite, logs through spdlog.
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog REQUIRED)
target_link_libraries(hearth_server PUBLIC OpenSSL::Crypto Threads::Threads
                      PRIVATE prometheus-cpp::core SQLite::SQLite3 spdlog::spdlog)
# The page at /, from web/.
include(${CMAKE_SOURCE_DIR}/cmake/web.cmake)
target_sources(hearth_server PRIVATE ${web_page})
