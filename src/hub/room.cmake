find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
target_link_libraries(hearth_hub PUBLIC CURL::libcurl OpenSSL::Crypto Threads::Threads)
