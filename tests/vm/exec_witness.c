/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_witness.c - preloaded into the command line: each program that it executes is written to EXEC_WITNESS, one name
 * a line.  Its children are started with an environment of their own, without this.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *name)
{
	const char *path = getenv("EXEC_WITNESS");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		dprintf(fd, "%s\n", name);
		close(fd);
	}
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	int (*real)(const char *, char *const[], char *const[]);

	note(path);
	*(void **) &real = dlsym(RTLD_NEXT, "execve");
	return real(path, argv, envp);
}

int execvp(const char *file, char *const argv[])
{
	int (*real)(const char *, char *const[]);

	note(file);
	*(void **) &real = dlsym(RTLD_NEXT, "execvp");
	return real(file, argv);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	int (*real)(const char *, char *const[], char *const[]);

	note(file);
	*(void **) &real = dlsym(RTLD_NEXT, "execvpe");
	return real(file, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	int (*real)(const char *, char *const[]);

	note(path);
	*(void **) &real = dlsym(RTLD_NEXT, "execv");
	return real(path, argv);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
	            const posix_spawnattr_t *, char *const[], char *const[]);

	note(path);
	*(void **) &real = dlsym(RTLD_NEXT, "posix_spawn");
	return real(pid, path, actions, attributes, argv, envp);
}

int system(const char *command)
{
	int (*real)(const char *);

	note(command);
	*(void **) &real = dlsym(RTLD_NEXT, "system");
	return real(command);
}
