# SPDX-License-Identifier: Apache-2.0
"""Writes SamplingKernels.inc: the text of each kernel of SamplingKernels.c, compiled by clang 22 for RV64GC."""

import pathlib
import re
import subprocess
import tempfile

FOLDER = pathlib.Path(__file__).parent
COMPILE = "clang-22 --target=riscv64 -march=rv64gc -mabi=lp64d -O3 -fno-vectorize -fno-slp-vectorize -ffreestanding -c"


def main() -> None:
    """Compile and write."""
    source = FOLDER / "SamplingKernels.c"
    names = re.findall(r"^KERNEL\((\w+)\)", source.read_text(), re.MULTILINE)
    lines = ["// SPDX-License-Identifier: Apache-2.0", f"// SamplingKernels.c, by sampling_kernels.py: {COMPILE}"]
    with tempfile.TemporaryDirectory() as folder:
        built = pathlib.Path(folder) / "kernels.o"
        subprocess.run([*COMPILE.split(), source, "-o", built], check=True)
        for name in names:
            text = pathlib.Path(folder) / name
            linked = text.with_suffix(".elf")
            subprocess.run(["ld.lld-22", "--gc-sections", "-e", name, built, "-o", linked], check=True)
            command = ["llvm-objcopy-22", "-O", "binary", "--only-section=.text", linked, text]
            subprocess.run(command, check=True)
            data = text.read_bytes()
            data += bytes(-len(data) % 4)
            words = [f"0x{int.from_bytes(data[i : i + 4], 'little'):08x}" for i in range(0, len(data), 4)]
            lines.append(f"const std::vector<uint32_t> {name} = {{")
            lines += ["    " + ", ".join(words[i : i + 10]) + "," for i in range(0, len(words), 10)]
            lines.append("};")
    (FOLDER / "SamplingKernels.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
