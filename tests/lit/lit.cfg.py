# SPDX-License-Identifier: Apache-2.0
# Runs the .mlir files of one stage's test folder through nearbank-opt and FileCheck.
import os

import lit.formats

stage = lit_config.params["stage"]
config.name = f"nearbank-{stage}"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.join(config.nearbank_source, "compiler", stage, "test")
config.test_exec_root = os.path.join(config.nearbank_build, "tests", "lit", stage)

tool_folders = [os.path.join(config.nearbank_build, "compiler", "tools"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join([*tool_folders, config.environment["PATH"]])
