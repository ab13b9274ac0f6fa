/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_init.c - a hostile guest (hostile.h) as PID 1 of a real machine, root, in the runner's place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "guest/identity.h"
#include "guest/init.h"
#include "guest/ports.h"
#include "hostile.h"

static void die(const char *what)
{
	dprintf(STDERR_FILENO, "hostile-init: %s: %s\n", what, strerror(errno));
	(void) reboot(RB_HALT_SYSTEM);
}

static int open_blocking(const char *name)
{
	struct resoluto_err err = { 0 };
	int fd = port_open(name, &err);

	if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0)
		die(err.text);
	return fd;
}

static void off(void)
{
	(void) reboot(RB_POWER_OFF);
}

int main(void)
{
	struct resoluto_err err = { 0 };
	char boot_id[BOOT_ID_SIZE];
	struct hostile guest = { .console = STDERR_FILENO, .boot_id = boot_id, .off = off };

	if (getpid() != 1)
		return 2;
	if (init_mount_early(&err) < 0 || init_load_modules(&err) < 0)
		die(err.text);
	identity_read(boot_id);
	guest.control = open_blocking("control");
	guest.conduit = open_blocking("conduit");
	hostile_play(&guest);
}
