// SPDX-License-Identifier: Apache-2.0
// What host and DPU agree upon.
#pragma once

#define ROUNDS 50
#define SLOTS 32
