find_package(Boost 1.81 REQUIRED COMPONENTS json)
target_link_libraries(hearth_base PUBLIC Boost::json)
