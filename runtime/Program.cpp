// SPDX-License-Identifier: Apache-2.0
// Sizes and names of element types.
#include "runtime/Program.h"

namespace nearbank {

uint64_t bytesOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::I64:
    return 8;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I16:
    return 2;
  case ElementType::I8:
  case ElementType::I1:
    return 1;
  }
  return 0;
}

const char *nameOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return "f64";
  case ElementType::F32:
    return "f32";
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::I64:
    return "i64";
  case ElementType::I32:
    return "i32";
  case ElementType::I16:
    return "i16";
  case ElementType::I8:
    return "i8";
  case ElementType::I1:
    return "i1";
  }
  return "";
}

} // namespace nearbank
