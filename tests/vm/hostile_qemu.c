/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_qemu.c - stands where QEMU would, with a hostile guest in it (hostile.h): for all that a virtual machine adds
 * nothing to.  Started by the very same launcher.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "qemu_argv.h"

static int monitor_fd;

static void off(void)
{
	dprintf(monitor_fd, "{\"event\":\"SHUTDOWN\",\"data\":{\"guest\":true,\"reason\":\"guest-"
	                    "shutdown\"}}\n");
	exit(0);
}

int main(int argc, char **argv)
{
	struct hostile guest = {
		.control = qemu_argv_fd(argv, "control"),
		.conduit = qemu_argv_fd(argv, "conduit"),
		.console = qemu_argv_fd(argv, "console"),
		.boot_id = "11111111-2222-4333-8444-555555555555",
		.off = off,
	};

	monitor_fd = qemu_argv_fd(argv, "qmp");
	hostile_play(&guest);
}
