// SPDX-License-Identifier: Apache-2.0
#ifndef NEARBANK_CODEGEN_PASSES
#define NEARBANK_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def LowerNestsPass : Pass<"nearbank-lower-nests", "::mlir::ModuleOp"> {
  let summary = "Turn each outlined nest into loops over a range of tasks";
  let description = [{
    Rewrites every function marked `nearbank.kernel` so that it runs tasks `[begin, end)` of its task range:
    arguments `begin`, `end` and a status buffer are appended, and `nearbank.tasks` holds the length of the
    range. Tasks are the collapsed parallel loops (tiles of them for contractions), so that host threads and
    PIM cores share one lowering. Four forms: contraction in cache blocks and register tiles (simulated
    machines), register-blocked contraction, reduction in registers, and parallel innermost loop. Initial values of `nearbank.init` are honoured. Loads at computed indices are
    clamped and report an index out of range in the status buffer, as does `cf.assert`. On the host, a matrix
    product may call BLAS.

    ```mlir
    func.func private @k(%x: memref<8x8xf32>, %y: memref<8xf32>) { linalg.generic {... reduction ...} }
    // becomes
    func.func private @k(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<2xi64>)
        attributes {nearbank.tasks = 8 : i64} { scf.for %t = %begin to %end ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "Side that runs the code: host (BLAS allowed), pim, modelled-host, or trace (host loops without BLAS). "
           "Default host, the side that always exists.">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "Register length of the vector unit of pim or modelled-host. Default 0, no vector unit.">
  ];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::func::FuncDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif
