// SPDX-License-Identifier: Apache-2.0
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-lower-nests=target=pim --canonicalize | FileCheck %s --check-prefixes=CHECK,PIM
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-lower-nests=target=host --canonicalize | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: nearbank-opt %s --nearbank-lift-nests "--nearbank-lower-nests=target=modelled-host vector-bits=256" --canonicalize | FileCheck %s --check-prefixes=CHECK,VECTOR

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

// The host calls BLAS. PIM computes blocks of 8 x 4 results, 64/8 * 64/4 tasks, with 4 x 4 of them in registers; it
// copies a panel of the second input, which is transposed, to scratch memory. With vectors of 8 the tile is 6 x 32.
// HOST:      func.func private @nearbankGemmF32
// CHECK:     func.func private @contraction_64x64x32_f32
// CHECK-SAME:  %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %{{.*}}: memref<{{[23]}}xi64>
// PIM-SAME:    nearbank.tasks = 128 : i64
// PIM:         %[[RESULTS:.*]] = memref.alloca() {{.*}} memref<8x4xf32>
// PIM:         %[[PANEL:.*]] = memref.alloca() {{.*}} memref<32x4xf32>
// PIM:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// PIM:           memref.store %{{.*}}, %[[PANEL]][%[[DEPTH:.*]], %[[COLUMN:.*]]]
// PIM-COUNT-16:  memref.load %[[RESULTS]]
// PIM:           scf.for {{.*}} iter_args
// PIM-COUNT-4:     memref.load %arg0
// PIM-COUNT-4:     memref.load %[[PANEL]]
// PIM-COUNT-16:    arith.mulf
// PIM-COUNT-16:  memref.store %{{.*}}, %[[RESULTS]]
// PIM:           memref.store %{{.*}}, %arg2
// VECTOR-SAME: nearbank.tasks = 12 : i64
// VECTOR:        %[[RESULTS:.*]] = memref.alloca() {{.*}} memref<12x32xf32>
// VECTOR-COUNT-24: vector.load %[[RESULTS]]
// VECTOR:        scf.for {{.*}} iter_args
// VECTOR-COUNT-6:  vector.broadcast
// VECTOR-COUNT-4:  vector.load
// VECTOR-COUNT-24: arith.mulf {{.*}} : vector<8xf32>
// HOST:        call @nearbankGemmF32

// A row sum keeps its result in a register.
// CHECK:     func.func private @reduction_64x32_f32
// CHECK-SAME:  nearbank.tasks = 64 : i64
// CHECK:       %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,nsz,contract>
// CHECK:       memref.store %[[SUM]]

// A column sum walks rows and accumulates in memory, along contiguous columns; on PIM a task is a cache line of them.
// CHECK:     func.func private @reduction_64x32_f32_v2
// HOST-SAME:   nearbank.tasks = 1 : i64
// PIM-SAME:    nearbank.tasks = 2 : i64
// VECTOR-SAME: nearbank.tasks = 2 : i64

// A gather clamps its index and reports it.
// CHECK:     func.func private @gather_16_f32
// CHECK:       %[[OK:.*]] = arith.cmpi ult, %[[INDEX:.*]], %c32
// CHECK:       scf.if
// CHECK:         memref.store
// CHECK:       %[[SAFE:.*]] = arith.select %[[OK]], %[[INDEX]], %c0
// CHECK:       memref.load %{{.*}}[%[[SAFE]]]
func.func @main(%x: memref<64x32xf32>, %w: memref<64x32xf32>, %y: memref<64x64xf32>, %s: memref<64xf32>,
                %t: memref<32xf32>, %g: memref<16xi64>, %o: memref<16xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x32xf32>, memref<64x32xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %p = arith.mulf %l, %r : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x32xf32>) outs(%s : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x32xf32>) outs(%t : memref<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%g : memref<16xi64>) outs(%o : memref<16xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %v = memref.load %t[%i] : memref<32xf32>
    linalg.yield %v : f32
  }
  return
}
