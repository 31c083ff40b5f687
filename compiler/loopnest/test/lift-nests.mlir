// SPDX-License-Identifier: Apache-2.0
// RUN: nearbank-opt %s --nearbank-lift-nests --split-input-file -verify-diagnostics | FileCheck %s

#id = affine_map<(i) -> (i)>

// Two equal nests share one kernel; a copy is a nest; the slice becomes an argument with a free offset.
// CHECK-LABEL: func.func @main
// CHECK:         call @elementwise_8_f32(%{{.*}}, %{{.*}}) {nearbank.id = "n0"}
// CHECK:         call @elementwise_8_f32(%{{.*}}, %{{.*}}) {nearbank.id = "n1"}
// CHECK:         call @copy_4_f32(%{{.*}}, %{{.*}}) {nearbank.id = "n2"}
// CHECK:       func.func private @elementwise_8_f32(%{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>)
// CHECK-SAME:    nearbank.kernel
// CHECK-SAME:    nearbank.key = "{{[0-9a-f]+}}"
// CHECK:       func.func private @copy_4_f32(%{{.*}}: memref<4xf32, strided<[1], offset: ?>>, %{{.*}}: memref<4xf32>)
// CHECK:         linalg.generic
func.func @main(%a: memref<8xf32>) -> (memref<8xf32>, memref<4xf32>) {
  %b = memref.alloc() : memref<8xf32>
  %c = memref.alloc() : memref<8xf32>
  %d = memref.alloc() : memref<4xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : memref<8xf32>) outs(%c : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  }
  %s = memref.subview %c[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %s, %d : memref<4xf32, strided<[1], offset: 4>> to memref<4xf32>
  return %c, %d : memref<8xf32>, memref<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// A scalar that a nest uses is recomputed inside it.
// CHECK-LABEL: func.func @main
// CHECK:       func.func private @elementwise_8_f32
// CHECK:         memref.load
// CHECK:         arith.negf
// CHECK:         linalg.generic
func.func @main(%a: memref<8xf32>, %s: memref<f32>) -> memref<8xf32> {
  %b = memref.alloc() : memref<8xf32>
  %v = memref.load %s[] : memref<f32>
  %n = arith.negf %v : f32
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.mulf %in, %n : f32
    linalg.yield %p : f32
  }
  return %b : memref<8xf32>
}

// -----

func.func @main(%a: memref<8xf32>, %p: i1) -> memref<8xf32> {
  // expected-error @+1 {{yields a value that other nests use and cannot be lifted}}
  %b = scf.if %p -> memref<8xf32> {
    scf.yield %a : memref<8xf32>
  } else {
    %c = memref.alloc() : memref<8xf32>
    scf.yield %c : memref<8xf32>
  }
  return %b : memref<8xf32>
}
