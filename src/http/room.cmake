# The C++20 coroutines of Boost.Asio; TLS through OpenSSL.
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
target_link_libraries(hearth_http PUBLIC Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
if("${HEARTH_SANITIZE}" MATCHES "thread")
  # The thread sanitizer does not understand fences; Asio's queues are guarded by locks without them.
  target_compile_definitions(hearth_http PUBLIC BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
# Beast 1.81 asserts that the last chunk comes with two bytes behind it; a client that sends it byte
# by byte would stop a debug build. What the code then does is right: see fuzz/http_fuzz.cc.
target_compile_definitions(hearth_http PRIVATE BOOST_DISABLE_ASSERTS)
