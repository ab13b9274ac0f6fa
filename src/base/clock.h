/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* clock.h - the clocks.  Code under test takes the time as an argument; only outer loops call these. */

#include <stdint.h>

uint64_t clock_mono_ms(void); /* since some fixed point; never steps */
uint64_t clock_mono_us(void);
double clock_wall(void); /* seconds since the epoch */
uint64_t clock_wall_ns(void);
/* Since some fixed point, at the rate of the machine: nobody corrects it, neither to step nor to hurry. */
uint64_t clock_raw_ns(void);
