# SPDX-License-Identifier: Apache-2.0
# Writes a header with the hash of the simulator's code, so that simulated times of another simulator are not reused.
file(SHA256 "${LIBRARY}" hash)
string(SUBSTRING "${hash}" 0 32 hash)
file(WRITE "${OUTPUT}.new" "// Made by SimulatorVersion.cmake.
namespace nearbank::driver {
inline constexpr char simulatorVersion[] = \"${hash}\";
} // namespace nearbank::driver
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
