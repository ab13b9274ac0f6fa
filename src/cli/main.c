/* SPDX-License-Identifier: Apache-2.0 */

/* main.c - resoluto-sandbox.  The commands are in commands.c, each in its cmd_<name>.c. */

#include <signal.h>

#include "cli/commands.h"

int main(int argc, char **argv)
{
	/* A reader of our output that goes away is an error of write(), not our death. */
	(void) signal(SIGPIPE, SIG_IGN);
	return command_main(cli_commands, (const char *const *) argv);
}
