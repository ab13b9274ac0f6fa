/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the smallest init there is: it powers the machine off at once (the boot bench's other side). */
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	(void) reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
