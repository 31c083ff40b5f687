// SPDX-License-Identifier: Apache-2.0
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-annotate-facts | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// 4*16*8 multiply-adds are 1024 operations; (4*8 + 16*8 + 4*16) * 4 bytes are read, 4*16*4 written.
// CHECK:      func.func private @contraction_4x16x8_f32
// CHECK-SAME: nearbank.facts = {bytesRead = 896 : i64, bytesWritten = 256 : i64, divisions = 0 : i64,
// CHECK-SAME: floatOps = 1024 : i64, integerOps = 0 : i64, iterations = 512 : i64, kind = "contraction",
// CHECK-SAME: loads = 1088 : i64, parallelExtent = 64 : i64, stores = 64 : i64, transcendentals = 0 : i64}
func.func @main(%x: memref<4x8xf32>, %w: memref<16x8xf32>, %y: memref<4x16xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x8xf32>, memref<16x8xf32>) outs(%y : memref<4x16xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
