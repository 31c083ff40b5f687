// SPDX-License-Identifier: Apache-2.0
// RUN: nearbank-opt %s --nearbank-lift-nests "--nearbank-lower-nests=target=modelled-host vector-bits=256" --canonicalize | FileCheck %s --check-prefixes=HOST
// RUN: nearbank-opt %s --nearbank-lift-nests "--nearbank-lower-nests=target=pim vector-bits=128" --canonicalize | FileCheck %s --check-prefixes=PIMV
// RUN: nearbank-opt %s --nearbank-lift-nests --nearbank-lower-nests=target=pim --canonicalize | FileCheck %s --check-prefixes=PIM

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#wt = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#vx = affine_map<(n, k) -> (k)>
#vw = affine_map<(n, k) -> (n, k)>
#vy = affine_map<(n, k) -> (n)>

// Both inputs are contiguous along the reduction. The modelled host reads them where they are, 4 rows and 4 columns of
// vectors of 8 products, and sums vectors up once per block of 512; the 4 iterations beyond 1020 are scalar. In-order
// cores with vectors make a panel for many rows: their loads are not hidden behind multiply-adds.
// HOST-LABEL: func.func private @contraction_256x256x1020_f32
// HOST:         memref.alloca()
// HOST-NOT:     memref.alloca()
// HOST:         scf.for
// HOST:           %[[SUMS:.*]]:16 = scf.for {{.*}} iter_args
// HOST-COUNT-4:     vector.load %arg0[{{.*}} : memref<256x1020xf32>, vector<8xf32>
// HOST-COUNT-4:     vector.load %arg1[{{.*}} : memref<256x1020xf32>, vector<8xf32>
// HOST-COUNT-16:    arith.mulf {{.*}} : vector<8xf32>
// HOST-COUNT-16:  vector.reduction <add>
// HOST:           scf.for {{.*}} iter_args
// HOST-COUNT-4:     memref.load %arg0
// HOST-COUNT-4:     memref.load %arg1
// PIMV-LABEL: func.func private @contraction_256x256x1020_f32
// PIMV:         %[[PANEL:.*]] = memref.alloca() {{.*}} memref<128x
// PIMV:           vector.load %[[PANEL]]
// PIM-LABEL:  func.func private @contraction_256x256x1020_f32
// PIM:          %[[PANEL:.*]] = memref.alloca() {{.*}} memref<128x
// PIM:            memref.load %[[PANEL]]

// Four rows use a panel too seldom: vectors of columns are loaded from the input itself.
// HOST-LABEL: func.func private @contraction_4x256x64_f32
// HOST:         memref.alloca()
// HOST-NOT:     memref.alloca()
// HOST-COUNT-4:   memref.load %arg0
// HOST-COUNT-4:   vector.load %arg1[{{.*}} : memref<64x256xf32>, vector<8xf32>
// HOST-COUNT-16:  arith.mulf {{.*}} : vector<8xf32>
// PIMV-LABEL: func.func private @contraction_4x256x64_f32
// PIMV:           vector.load %arg1[{{.*}} : memref<64x256xf32>, vector<4xf32>

// Four sums of a matrix-vector product, four steps at a time.
// PIM-LABEL:  func.func private @contraction_512x256_f32
// PIM-SAME:     nearbank.tasks = 128 : i64
// PIM:            scf.for {{.*}} step %c4 iter_args
// PIM-COUNT-16:     arith.mulf
// PIM:              scf.yield
func.func @main(%x: memref<256x1020xf32>, %wt: memref<256x1020xf32>, %y: memref<256x256xf32>, %x4: memref<4x64xf32>,
                %w4: memref<64x256xf32>, %y4: memref<4x256xf32>, %v: memref<256xf32>, %m: memref<512x256xf32>,
                %r: memref<512xf32>) {
  linalg.generic {indexing_maps = [#x, #wt, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %wt : memref<256x1020xf32>, memref<256x1020xf32>) outs(%y : memref<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x4, %w4 : memref<4x64xf32>, memref<64x256xf32>) outs(%y4 : memref<4x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#vx, #vw, #vy], iterator_types = ["parallel", "reduction"]}
      ins(%v, %m : memref<256xf32>, memref<512x256xf32>) outs(%r : memref<512xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
