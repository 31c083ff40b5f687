// SPDX-License-Identifier: Apache-2.0
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-lower-nests=target=pim --canonicalize | FileCheck %s
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-lower-nests=target=host --canonicalize | FileCheck %s

#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j, i)>

// Tiles of 16 elements of 8 lines: 48/16 x 40/8 tasks, and 40 x 20 leaves ragged ones.
// CHECK-LABEL: func.func private @transpose_48x40_f32
// CHECK-SAME:    nearbank.tasks = 15 : i64
// CHECK:         scf.for
// CHECK:           scf.for %[[I:.*]] = {{.*}} step %c1 {
// CHECK-NEXT:        %[[END:.*]] = arith.addi
// CHECK-NEXT:        scf.for %[[J:.*]] = {{.*}} to %[[END]]
// CHECK-NEXT:          %[[X:.*]] = memref.load %arg0[%[[J]], %[[I]]]
// CHECK-NEXT:          memref.store %[[X]], %arg1[%[[I]], %[[J]]]
// CHECK-LABEL: func.func private @transpose_20x20_f32
// CHECK-SAME:    nearbank.tasks = 6 : i64
// CHECK:         arith.minui
// CHECK:         arith.minui

// Too short to be cut: a task is a row.
// CHECK-LABEL: func.func private @transpose_12x40_f32
// CHECK-SAME:    nearbank.tasks = 24 : i64
func.func @main(%a: memref<40x48xf32>, %b: memref<48x40xf32>, %c: memref<20x20xf32>, %d: memref<20x20xf32>,
                %e: memref<40x12xf32>, %f: memref<12x40xf32>) {
  linalg.generic {indexing_maps = [#columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<40x48xf32>) outs(%b : memref<48x40xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<20x20xf32>) outs(%d : memref<20x20xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%e : memref<40x12xf32>) outs(%f : memref<12x40xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
