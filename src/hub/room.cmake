find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
target_link_libraries(hearth_hub PUBLIC OpenSSL::Crypto Threads::Threads)
