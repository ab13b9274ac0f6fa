/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#include "base/cleanup.h"
#include "base/config.h"
#include "base/io.h"
#include "base/path.h"

/* Each test has a home of its own, and no variable of ours set. */
static char home[64];
static struct config *config;

static void end(void)
{
	config_free(&config);
	if (home[0])
		(void) remove_tree_at(AT_FDCWD, home);
	home[0] = '\0';
}

static void begin(void)
{
	static const char *const names[] = { "RESOLUTO_LOCAL_ENV", "RESOLUTO_STATE_DIR",
		                             "RESOLUTO_CACHE_DIR", "RESOLUTO_LIBEXEC_DIR",
		                             "XDG_CONFIG_HOME",    "XDG_STATE_HOME",
		                             "XDG_CACHE_HOME",     "CONFIG_TEST" };

	end();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(unsetenv(names[i]) == 0);
	snprintf(home, sizeof(home), "/tmp/config-XXXXXX");
	CHECK(mkdtemp(home) && setenv("HOME", home, 1) == 0);
}

/* The file at home/path, its directories made. */
static void write_file(const char *path, const char *text)
{
	CLEANUP(fd_close) int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_close) int parent = -1;
	const char *name;

	parent = open_parent_beneath(dir, path, true, 0700, &name);
	CHECK(parent >= 0);
	CHECK(replace_file_at(parent, name, text, strlen(text), 0755, NULL) == 0);
}

static const char *home_path(const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", home, path);
	return full;
}

static void load_named(const char *text)
{
	write_file("named.env", text);
	CHECK(setenv("RESOLUTO_LOCAL_ENV", home_path("named.env"), 1) == 0);
	config_free(&config);
	CHECK(config_load(&config, NULL) == 0);
}

static void reads_the_file_that_is_named(void)
{
	begin();
	load_named("# comment\nexport RESOLUTO_LOCAL_ACCEL=tcg\n\nA=1\nA=2\nQ=\"a "
	           "b\"\nR='x'\nS=\"\nnonsense\n"
	           "E=\n");
	CHECK_STR(config_get(config, "RESOLUTO_LOCAL_ACCEL"), "tcg");
	CHECK_STR(config_get(config, "A"), "2");
	CHECK_STR(config_get(config, "Q"), "a b");
	CHECK_STR(config_get(config, "R"), "x");
	CHECK_STR(config_get(config, "S"), "\"");
	CHECK_STR(config_get(config, "E"), "");
	CHECK(!config_get(config, "nonsense") && !config_get(config, "nonsens"));
	CHECK_STR(config_file(config), home_path("named.env"));
	CHECK_STR(config_origin(config, "A"), home_path("named.env"));
	CHECK_STR(config_origin(config, "none"), "default");
	CHECK_STR(config_entries(config)[1], "A=1");
	CHECK_STR(config_odd_lines(config)[0], "line 9");
	CHECK(!config_odd_lines(config)[1]);
}

static void takes_lines_as_other_systems_write_them(void)
{
	begin();
	load_named("A=1\r\n  B=2\r\n\texport C=\"3\"\r\n  # D=4\r\n");
	CHECK_STR(config_get(config, "A"), "1");
	CHECK_STR(config_get(config, "B"), "2");
	CHECK_STR(config_get(config, "C"), "3");
	CHECK(!config_get(config, "D") && !config_odd_lines(config));
}

static void prefers_the_environment(void)
{
	begin();
	CHECK(setenv("CONFIG_TEST", "from the environment", 1) == 0);
	load_named("CONFIG_TEST=from the file\n");
	CHECK_STR(config_get(config, "CONFIG_TEST"), "from the environment");
	CHECK_STR(config_origin(config, "CONFIG_TEST"), "environment");
	CHECK(unsetenv("CONFIG_TEST") == 0);
	CHECK_STR(config_get(config, "CONFIG_TEST"), "from the file");
}

static void finds_the_file_of_the_user(void)
{
	begin();
	write_file(".config/resoluto-sandbox/local.env", "WHERE=home\n");
	CHECK(config_load(&config, NULL) == 0);
	CHECK_STR(config_get(config, "WHERE"), "home");
	config_free(&config);
	write_file("xdg/resoluto-sandbox/local.env", "WHERE=xdg\n");
	CHECK(setenv("XDG_CONFIG_HOME", home_path("xdg"), 1) == 0);
	CHECK(config_load(&config, NULL) == 0);
	CHECK_STR(config_get(config, "WHERE"), "xdg");
	config_free(&config);
	load_named("WHERE=named\n");
	CHECK_STR(config_get(config, "WHERE"), "named");
	config_free(&config);
	/* A relative one does not count, as the XDG rules say. */
	CHECK(unsetenv("RESOLUTO_LOCAL_ENV") == 0 && setenv("XDG_CONFIG_HOME", "xdg", 1) == 0);
	CHECK(config_load(&config, NULL) == 0);
	CHECK_STR(config_get(config, "WHERE"), "home");
}

static void tells_a_file_it_cannot_use(void)
{
	CLEANUP(mem_free) char *large = malloc(70 * 1024);
	struct resoluto_err err = { 0 };

	begin();
	CHECK(setenv("RESOLUTO_LOCAL_ENV", home_path("none.env"), 1) == 0);
	CHECK(config_load(&config, &err) == -ENOENT && !config);
	CHECK(strstr(err.text, "none.env"));
	CHECK(setenv("RESOLUTO_LOCAL_ENV", home, 1) == 0);
	CHECK(config_load(&config, &err) == -EISDIR && !config);
	CHECK(large);
	memset(large, '#', 70 * 1024 - 1);
	large[70 * 1024 - 1] = '\0';
	write_file("large.env", large);
	CHECK(setenv("RESOLUTO_LOCAL_ENV", home_path("large.env"), 1) == 0);
	CHECK(config_load(&config, &err) == -E2BIG && !config);
}

static void reads_an_empty_file(void)
{
	begin();
	load_named("");
	CHECK(!config_get(config, "") && !config_get(config, "A"));
}

static void names_its_directories(void)
{
	begin();
	load_named("RESOLUTO_STATE_DIR=/from/file\n");
	CHECK(setenv("RESOLUTO_CACHE_DIR", "/from/environment", 1) == 0);
	config_free(&config);
	CHECK(config_load(&config, NULL) == 0);
	CHECK_STR(config_state_dir(config), "/from/file");
	CHECK_STR(config_cache_dir(config), "/from/environment");
	CHECK_STR(config_system_cache_dir(config), "/var/cache/resoluto-sandbox");
	CHECK(setenv("RESOLUTO_CACHE_DIR", "/var/cache/resoluto-sandbox", 1) == 0);
	config_free(&config);
	CHECK(config_load(&config, NULL) == 0);
	CHECK(!config_system_cache_dir(config));
}

static void a_relative_directory_is_one_of_here(void)
{
	CLEANUP(mem_free) char *before = getcwd(NULL, 0);

	begin();
	CHECK(chdir(home) == 0);
	CHECK(setenv("RESOLUTO_CACHE_DIR", "./cache", 1) == 0);
	load_named("RESOLUTO_STATE_DIR=state/deep\n");
	CHECK(chdir(before) == 0);
	CHECK_STR(config_state_dir(config), home_path("state/deep"));
	CHECK_STR(config_cache_dir(config), home_path("./cache"));
}

static int directories_of_an_ordinary_user(void)
{
	char state[PATH_MAX], cache[PATH_MAX];
	struct config *ours;

	if (geteuid() == 0 && seteuid(65534) < 0)
		return 1;
	snprintf(state, sizeof(state), "%s/.local/state/resoluto-sandbox", home);
	snprintf(cache, sizeof(cache), "/xdg/cache/resoluto-sandbox");
	if (setenv("XDG_CACHE_HOME", "/xdg/cache", 1) < 0 || config_load(&ours, NULL) < 0)
		return 2;
	if (strcmp(config_state_dir(ours), state) != 0 ||
	    strcmp(config_cache_dir(ours), cache) != 0)
		return 3;
	config_free(&ours);
	return 0;
}

static void has_defaults_for_users_and_root(void)
{
	int status;
	pid_t pid;

	begin();
	/* Whatever the machine is set up with. */
	load_named("");
	config_free(&config);
	CHECK(chmod(home, 0755) == 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(directories_of_an_ordinary_user());
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	if (geteuid() != 0)
		return;
	CHECK(config_load(&config, NULL) == 0);
	CHECK_STR(config_state_dir(config), "/var/lib/resoluto-sandbox");
	CHECK_STR(config_cache_dir(config), "/var/cache/resoluto-sandbox");
}

static void refuses_paths_too_long(void)
{
	char path[PATH_MAX + 10];
	struct resoluto_err err = { 0 };

	begin();
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	CHECK(setenv("RESOLUTO_STATE_DIR", path, 1) == 0);
	CHECK(config_load(&config, &err) == -ENAMETOOLONG && !config);
	CHECK(strstr(err.text, "RESOLUTO_STATE_DIR"));
}

static void finds_helpers(void)
{
	CLEANUP(mem_free) char *path = NULL;
	struct resoluto_err err = { 0 };

	begin();
	CHECK(config_load(&config, NULL) == 0);
	write_file("libexec/helper", "");
	CHECK(setenv("RESOLUTO_LIBEXEC_DIR", home_path("libexec"), 1) == 0);
	CHECK(config_find_helper(config, "helper", &path, NULL) == 0);
	CHECK_STR(path, home_path("libexec/helper"));
	mem_free(&path);
	path = NULL;
	CHECK(config_find_helper(config, "other", &path, &err) == -ENOENT && !path);
	CHECK(strstr(err.text, "other") && strstr(err.text, "libexec"));
	/* Empty is as good as not set: beside the running program, which is this one. */
	CHECK(setenv("RESOLUTO_LIBEXEC_DIR", "", 1) == 0);
	CHECK(config_find_helper(config, strrchr(program_invocation_name, '/') + 1, &path, NULL) ==
	      0);
	CHECK(access(path, X_OK) == 0);
}

int main(void)
{
	RUN(reads_the_file_that_is_named);
	RUN(takes_lines_as_other_systems_write_them);
	RUN(prefers_the_environment);
	RUN(finds_the_file_of_the_user);
	RUN(tells_a_file_it_cannot_use);
	RUN(reads_an_empty_file);
	RUN(names_its_directories);
	RUN(a_relative_directory_is_one_of_here);
	RUN(has_defaults_for_users_and_root);
	RUN(refuses_paths_too_long);
	RUN(finds_helpers);
	end();
	return check_done();
}
