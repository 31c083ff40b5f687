# SPDX-License-Identifier: Apache-2.0
# Writes a header with hashes of the simulators' code, so that simulated times of another simulator are not reused.
file(SHA256 "${LIBRARY}" hash)
string(SUBSTRING "${hash}" 0 32 hash)
file(SHA256 "${DPU_LIBRARY}" dpuHash)
string(SUBSTRING "${dpuHash}" 0 32 dpuHash)
file(WRITE "${OUTPUT}.new" "// Made by SimulatorVersion.cmake.
namespace nearbank::driver {
inline constexpr char simulatorVersion[] = \"${hash}\";
inline constexpr char dpuSimulatorVersion[] = \"${dpuHash}\";
} // namespace nearbank::driver
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
