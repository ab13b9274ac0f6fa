/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bomb.c - a program that takes what it can get; built static by test_bombs.py and run in the guest.
 *
 * usage: bomb forks     processes that stay, until there are no more; then prints how many, and why no more
 *        bomb leaves    the same, but each again and again, and nobody waits for anybody
 *        bomb memory    two processes that take memory for ever; then prints how many were killed for it
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EATERS = 2, PIECE = 1024 * 1024 };

static int forks(void)
{
	unsigned count = 0;

	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			close(0);
			close(1);
			close(2);
			pause();
			_exit(0);
		}
		count++;
	}
	printf("%u more, then %s\n", count, strerrorname_np(errno));
	return 9;
}

static __attribute__((noreturn)) void leaves(void)
{
	puts("off");
	fflush(stdout);
	for (;;)
		(void) fork();
}

static __attribute__((noreturn)) void eat(void)
{
	for (;;) {
		char *piece = malloc(PIECE);

		if (piece)
			memset(piece, 1, PIECE);
	}
}

static int memory(void)
{
	unsigned killed = 0;

	for (int i = 0; i < EATERS; i++) {
		if (fork() == 0)
			eat();
	}
	for (int i = 0; i < EATERS; i++) {
		int status = 0;

		if (wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			killed++;
	}
	printf("%u killed\n", killed);
	return 7;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "forks") == 0)
		return forks();
	if (argc == 2 && strcmp(argv[1], "leaves") == 0)
		leaves();
	return memory();
}
