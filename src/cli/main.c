/* SPDX-License-Identifier: Apache-2.0 */

/* main.c - resoluto-sandbox.  The commands are in commands.c, each in its cmd_<name>.c. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "cli/commands.h"
#include "resoluto/sandbox.h"

enum { STANDARD_FDS = 3 };

/* A standard descriptor that came closed is taken, and fails as a closed one does: else the next file, socket or lock
 * that is opened gets its number, and the program's output. */
static int take_closed_descriptors(void)
{
	for (int fd = 0; fd < STANDARD_FDS; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (take_closed_descriptors() < 0)
		return RESOLUTO_EXIT_SANDBOX;
	/* A reader of our output that goes away is an error of write(), not our death. */
	(void) signal(SIGPIPE, SIG_IGN);
	/* Over `ulimit -f` a write fails with words, instead of ending us without. */
	(void) signal(SIGXFSZ, SIG_IGN);
	/* Who started us may have ignored it; then the kernel would reap our children before we see how they ended. */
	(void) signal(SIGCHLD, SIG_DFL);
	return command_main(cli_commands, (const char *const *) argv);
}
