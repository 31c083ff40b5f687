// SPDX-License-Identifier: Apache-2.0
// Meeting of two tasklets.
#pragma once

#include <sysdef.h>

/// Lets the tasklet go on that waits for this one; sleeps until there is one.
void handshake_notify(void);
/// Sleeps until tasklet `notifier` notifies. Returns 0, or EALREADY when another one waits for it already.
int handshake_wait_for(sysname_t notifier);
