/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/hosts.h"

static const char blanks[] = " \t\r";

static int add(struct hosts *hosts, const struct hosts_entry *like, const char *word)
{
	struct hosts_entry *entries;
	struct egress_name name;
	char *copy;

	if (hosts->count == HOSTS_ENTRIES_MAX ||
	    egress_name_parse(word, strlen(word), &name) != EGRESS_NONE)
		return 0;
	entries = reallocarray(hosts->entries, hosts->count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	hosts->entries = entries;
	copy = strdup(name.text);
	if (!copy)
		return -ENOMEM;
	entries[hosts->count] = *like;
	entries[hosts->count++].name = copy;
	return 0;
}

static bool read_address(const char *word, struct hosts_entry *entry)
{
	entry->family = AF_INET;
	if (inet_pton(AF_INET, word, &entry->address) == 1)
		return true;
	entry->family = AF_INET6;
	return inet_pton(AF_INET6, word, &entry->address) == 1;
}

/* line is cut into its words. */
static int add_line(struct hosts *hosts, char *line)
{
	struct hosts_entry entry = { 0 };
	char *rest = NULL, *word;
	int r = 0;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, blanks, &rest);
	if (!word || !read_address(word, &entry))
		return 0;
	while (r == 0 && (word = strtok_r(NULL, blanks, &rest)))
		r = add(hosts, &entry, word);
	return r;
}

int hosts_parse(const char *text, size_t len, struct hosts *ret_hosts)
{
	struct hosts hosts = { 0 };
	char *copy = strndup(text, len), *rest = NULL;
	int r = copy ? 0 : -ENOMEM;

	for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line && r == 0;
	     line = strtok_r(NULL, "\n", &rest))
		r = add_line(&hosts, line);
	free(copy);
	if (r < 0) {
		hosts_done(&hosts);
		return r;
	}
	*ret_hosts = hosts;
	return 0;
}

void hosts_done(struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		free(hosts->entries[i].name);
	free(hosts->entries);
	*hosts = (struct hosts){ 0 };
}
