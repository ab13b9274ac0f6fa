/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/io.h"

#define SYSTEM_CONFIG "/etc/resoluto-sandbox/local.env"
#define SYSTEM_CACHE "/var/cache/resoluto-sandbox"
#define SYSTEM_STATE "/var/lib/resoluto-sandbox"

enum { CONFIG_MAX = 64 * 1024 }; /* bytes of a configuration file */

struct config {
	char *path;          /* owned: the file that was read; NULL: none */
	struct strv entries; /* KEY=VALUE */
	struct strv odd;     /* "line N" */
	char state_dir[PATH_MAX], cache_dir[PATH_MAX];
};

void config_free(struct config **config)
{
	if (!*config)
		return;
	free((*config)->path);
	strv_done(&(*config)->entries);
	strv_done(&(*config)->odd);
	free(*config);
	*config = NULL;
}

/* KEY=VALUE as provisioning writes it: no quotes needed, one pair of them taken off. */
static int add_line(struct config *config, char *line, unsigned number)
{
	char *value;
	size_t n;

	line += strspn(line, " \t");
	line[strcspn(line, "\r")] = '\0';
	value = strchr(line, '=');
	if (line[0] == '#' || !line[0])
		return 0;
	if (!value)
		return strv_addf(&config->odd, "line %u", number);
	if (strncmp(line, "export ", 7) == 0)
		line += 7;
	*value++ = '\0';
	n = strlen(value);
	if (n >= 2 && (value[0] == '\'' || value[0] == '"') && value[n - 1] == value[0]) {
		value[n - 1] = '\0';
		value++;
	}
	return strv_addf(&config->entries, "%s=%s", line, value);
}

static int read_config(struct config *config, const char *path, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	unsigned number = 0;
	char *rest, *line;
	int r = read_file_at(AT_FDCWD, path, CONFIG_MAX, &text, err);

	if (r < 0)
		return r;
	config->path = strdup(path);
	if (!config->path)
		return resoluto_fail(err, -ENOMEM, "read %s", path);
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		r = add_line(config, line, ++number);
		if (r < 0)
			return resoluto_fail(err, r, "read %s", path);
	}
	return 0;
}

/* "base/suffix", or "$HOME/fallback/suffix" where base is not an absolute path, as the XDG rules have
 * it.  -ENAMETOOLONG: it did not fit. */
static int home_path(const char *base, const char *fallback, const char *suffix, char *ret,
                     size_t cap)
{
	const char *home = getenv("HOME");
	int n;

	if (base && base[0] == '/')
		n = snprintf(ret, cap, "%s/%s", base, suffix);
	else
		n = snprintf(ret, cap, "%s/%s/%s", home && home[0] ? home : "/nonexistent",
		             fallback, suffix);
	return n < 0 || (size_t) n >= cap ? -ENAMETOOLONG : 0;
}

static int read_first(struct config *config, struct resoluto_err *err)
{
	const char *named = getenv("RESOLUTO_LOCAL_ENV");
	char user[PATH_MAX];

	if (named && named[0])
		return read_config(config, named, err);
	/* One that is too long is no file's. */
	if (home_path(getenv("XDG_CONFIG_HOME"), ".config", "resoluto-sandbox/local.env", user,
	              sizeof(user)) == 0 &&
	    access(user, F_OK) == 0)
		return read_config(config, user, err);
	if (access(SYSTEM_CONFIG, F_OK) == 0)
		return read_config(config, SYSTEM_CONFIG, err);
	return 0;
}

/* From where we are: others are told it, too, who are elsewhere. */
static int absolute_path(const char *path, char ret[PATH_MAX])
{
	char here[PATH_MAX] = "";
	int n;

	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	n = snprintf(ret, PATH_MAX, "%s%s%s", here, here[0] ? "/" : "", path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int set_dir(const struct config *config, const char *name, const char *system,
                   const char *xdg, const char *fallback, char ret[PATH_MAX],
                   struct resoluto_err *err)
{
	const char *given = config_get(config, name);
	int r = 0;

	if (given && given[0])
		r = absolute_path(given, ret);
	else if (geteuid() == 0)
		snprintf(ret, PATH_MAX, "%s", system);
	else
		r = home_path(xdg, fallback, "resoluto-sandbox", ret, PATH_MAX);
	if (r == -ENAMETOOLONG)
		return resoluto_fail(err, r, "the path of %s is too long", name);
	return r < 0 ? resoluto_fail(err, r, "%s is relative to a directory that is gone", name)
	             : 0;
}

int config_load(struct config **ret_config, struct resoluto_err *err)
{
	CLEANUP(config_free) struct config *config = calloc(1, sizeof(*config));
	int r;

	if (!config)
		return resoluto_fail(err, -ENOMEM, "load configuration");
	r = read_first(config, err);
	if (r == 0)
		r = set_dir(config, "RESOLUTO_STATE_DIR", SYSTEM_STATE, getenv("XDG_STATE_HOME"),
		            ".local/state", config->state_dir, err);
	if (r == 0)
		r = set_dir(config, "RESOLUTO_CACHE_DIR", SYSTEM_CACHE, getenv("XDG_CACHE_HOME"),
		            ".cache", config->cache_dir, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "load configuration");
	*ret_config = mem_take(&config);
	return 0;
}

static const char *file_value(const struct config *config, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = config->entries.count; i > 0; i--) {
		const char *entry = config->entries.items[i - 1];

		if (strncmp(entry, name, n) == 0 && entry[n] == '=')
			return entry + n + 1;
	}
	return NULL;
}

const char *config_get(const struct config *config, const char *name)
{
	const char *value = getenv(name);

	return value ? value : file_value(config, name);
}

const char *config_origin(const struct config *config, const char *name)
{
	if (getenv(name))
		return "environment";
	return file_value(config, name) ? config->path : "default";
}

const char *config_file(const struct config *config)
{
	return config->path;
}

const char *const *config_entries(const struct config *config)
{
	return (const char *const *) config->entries.items;
}

const char *const *config_odd_lines(const struct config *config)
{
	return (const char *const *) config->odd.items;
}

const char *config_state_dir(const struct config *config)
{
	return config->state_dir;
}

const char *config_cache_dir(const struct config *config)
{
	return config->cache_dir;
}

const char *config_system_cache_dir(const struct config *config)
{
	return strcmp(config->cache_dir, SYSTEM_CACHE) == 0 ? NULL : SYSTEM_CACHE;
}

/* Whether dir holds a program of this name; then ret is its path. */
static bool helper_in(const char *dir, const char *name, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);

	return n < PATH_MAX && access(ret, X_OK) == 0;
}

/* A build has a folder for each, side by side: RESOLUTO_LIBEXEC_DIR names that of the shim. */
static bool helper_in_build(const char *dir, const char *name, char ret[PATH_MAX])
{
	const char *dash = strchr(name, '-');
	char beside[PATH_MAX];
	int n = snprintf(beside, sizeof(beside), "%s/../%s", dir, dash ? dash + 1 : name);

	return n < PATH_MAX && helper_in(beside, name, ret);
}

static bool helper_beside_us(const char *name, char ret[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return helper_in(self, name, ret);
}

int config_find_helper(const struct config *config, const char *name, char **ret_path,
                       struct resoluto_err *err)
{
	const char *dir = config_get(config, "RESOLUTO_LIBEXEC_DIR");
	char path[PATH_MAX], *copy;
	bool is_found;

	if (dir && dir[0])
		is_found = helper_in(dir, name, path) || helper_in_build(dir, name, path);
	else
		is_found = helper_beside_us(name, path) || helper_in(LIBEXEC_DIR, name, path);
	if (!is_found)
		return resoluto_fail(
			err, -ENOENT,
			"%s is not in %s; install the package whole or set RESOLUTO_LIBEXEC_DIR",
			name, dir && dir[0] ? dir : LIBEXEC_DIR);
	copy = strdup(path);
	if (!copy)
		return resoluto_fail(err, -ENOMEM, "find %s", name);
	*ret_path = copy;
	return 0;
}
