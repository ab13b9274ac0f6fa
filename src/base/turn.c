/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/turn.h"

enum { TURN_NS = 100 * 1000 }; /* the shortest that the kernel grants */

void turn_make_short(void)
{
	struct sched_attr attr = { .size = sizeof(attr) };

	/* With a higher rank than the usual one, what is started would lose that along with the turn. */
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.sched_policy != SCHED_NORMAL || attr.sched_nice < 0)
		return;
	attr.sched_flags |= SCHED_FLAG_RESET_ON_FORK;
	attr.sched_runtime = TURN_NS;
	(void) syscall(SYS_sched_setattr, 0, &attr, 0);
}
