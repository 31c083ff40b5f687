// SPDX-License-Identifier: Apache-2.0
#ifndef NEARBANK_LOOPNEST_PASSES
#define NEARBANK_LOOPNEST_PASSES

include "mlir/Pass/PassBase.td"

def NormalizeInputPass : Pass<"nearbank-normalize-input", "::mlir::ModuleOp"> {
  let summary = "Rewrite every tensor operation into linalg.generic, fills and slices";
  let description = [{
    Turns named linalg operations (except `linalg.fill`), elementwise operations on tensors, `tensor.pad` and
    `tensor.concat` into `linalg.generic`, `linalg.fill` and `tensor.insert_slice`, and drops dimensions of
    extent one. Input: linalg on tensors with static shapes. Does nothing to operations that are in this form.

    ```mlir
    %0 = linalg.matmul ins(%a, %b : ...) outs(%c : ...) -> tensor<4x4xf32>
    // becomes
    %0 = linalg.generic {indexing_maps = [...], iterator_types = ["parallel", "parallel", "reduction"]} ...
    ```
  }];
}

def FuseNestsPass : Pass<"nearbank-fuse-nests", "::mlir::ModuleOp"> {
  let summary = "Fuse elementwise producers into their consumers";
  let description = [{
    Fuses a `linalg.generic` with only parallel iterators into the consumer of its single use, so that each
    remaining `linalg.generic` is one candidate loop nest. A producer that computes is not fused into a
    consumer that would evaluate it more than once per element (a contraction's operand, a broadcast); pure
    data movement (transpose, broadcast) always is. Reshapes are moved across parallel operations when this
    brings two of them together.

    ```mlir
    %1 = linalg.generic {... exp ...} ins(%0) ...
    %2 = linalg.generic {... addf reduction ...} ins(%1) ...
    // becomes one linalg.generic that reduces exp(%0)
    ```
  }];
}

def FoldFillsPass : Pass<"nearbank-fold-fills", "::mlir::ModuleOp"> {
  let summary = "Make the initial value of a reduction part of its nest";
  let description = [{
    A reduction whose output starts as a `linalg.fill` with a constant takes the constant as attribute
    `nearbank.init` (one entry per output, unit where there is none) and a `tensor.empty` as output. The nest
    then writes its output without reading it, and the fill is no nest of its own. Every use of a
    `tensor.empty` gets one of its own, so that bufferization sees unrelated nests apart. Lowering honours the
    attribute; no pass may run in between that treats the output as read.

    ```mlir
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %r = linalg.generic {...} ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) ...
    // becomes
    %r = linalg.generic {...} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4xf32>) attrs = {nearbank.init = [0.0 : f32]} ...
    ```
  }];
}

def LiftNestsPass : Pass<"nearbank-lift-nests", "::mlir::ModuleOp"> {
  let summary = "Outline every top-level loop nest of `main` into a function and share equal ones";
  let description = [{
    After bufferization each top-level `linalg` operation, copy, loop and scalar store of `main` becomes a call
    of a private function marked `nearbank.kernel` that holds just this nest. Memory operands are arguments
    whose layout has static strides and a free offset; scalars are recomputed inside. Two nests with the same
    canonical text share one function, its hash being the structural key (`nearbank.key`). Calls carry
    `nearbank.id` and the location of the nest. Allocation, views and constants stay in `main`.

    ```mlir
    linalg.generic {...} ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) ...
    // becomes
    call @elementwise_8_f32(%a, %b) {nearbank.id = "n0"} : (memref<8xf32>, memref<8xf32>) -> ()
    ```
  }];
}

def AnnotateFactsPass : Pass<"nearbank-annotate-facts", "::mlir::ModuleOp"> {
  let summary = "Attach what the IR tells of each nest as attribute `nearbank.facts`";
  let description = [{
    Counts iterations, operations by type and bytes of every function marked `nearbank.kernel` and attaches
    them as a dictionary, for reading and for tests. Changes nothing else.

    ```mlir
    func.func private @elementwise_8_f32(...) attributes {nearbank.kernel, nearbank.facts = {iterations = 8 : i64, ...}}
    ```
  }];
}

#endif
