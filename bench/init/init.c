/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the smallest init there is: it leaves at once (the boot bench's other side).  BY_RESET: on a machine that
 * has no switch. */
#include <sys/reboot.h>
#include <unistd.h>

#ifdef BY_RESET
enum { HOW = RB_AUTOBOOT };
#else
enum { HOW = RB_POWER_OFF };
#endif

int main(void)
{
	(void) reboot(HOW);
	for (;;)
		pause();
}
