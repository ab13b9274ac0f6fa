/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_cut.c - an init that becomes the runner, and beside it root of the guest, who switches the machine off in the
 * middle of the run: once a program `sleep 71` is there and the runner has had nothing to do for a while.
 *
 * In the initramfs with the runner as /runner; the program in the sandbox chooses the moment by starting the sleep.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROC "/cut"

enum {
	LOOK_MS = 20,
	QUIET_LOOKS = 5, /* so many without a switch of the runner's threads: it waits */
};

static const char moment[] = "sleep\00071";

static size_t read_file(const char *name, const char *file, char *text, size_t size)
{
	char path[300];
	size_t len = 0;
	FILE *in;

	snprintf(path, sizeof(path), PROC "/%s/%s", name, file);
	in = fopen(path, "re");
	if (in) {
		len = fread(text, 1, size - 1, in);
		fclose(in);
	}
	text[len] = '\0';
	return len;
}

static bool has_come(void)
{
	DIR *dir = opendir(PROC);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		char argv[64];

		found = read_file(entry->d_name, "cmdline", argv, sizeof(argv)) == sizeof(moment) &&
		        memcmp(argv, moment, sizeof(moment)) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* How often the runner went to sleep of its own accord. */
static long switches(void)
{
	char status[4096];
	const char *at;

	read_file("1", "status", status, sizeof(status));
	at = strstr(status, "\nvoluntary_ctxt_switches:");
	return at ? strtol(at + strlen("\nvoluntary_ctxt_switches:"), NULL, 10) : -1;
}

static void look_again(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
}

static void cut(void)
{
	long last = -1;

	mkdir(PROC, 0700);
	if (mount("proc", PROC, "proc", 0, NULL) < 0)
		perror("guest-cut: mount proc");
	while (!has_come())
		look_again();
	for (int quiet = 0; quiet < QUIET_LOOKS; quiet++) {
		long now = switches();

		if (now != last)
			quiet = 0;
		last = now;
		look_again();
	}
	reboot(RB_POWER_OFF);
}

int main(int argc, char **argv)
{
	if (fork() == 0) {
		cut();
		_exit(0);
	}
	execv("/runner", argv);
	perror("guest-cut: /runner");
	return 1;
}
