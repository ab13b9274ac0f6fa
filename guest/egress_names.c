/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/egress_names.h"

enum {
	FIRST4 = (198 << 24) | (18 << 16), /* 198.18.0.0, as an int: compared as uint32_t */
	FIRST_NUMBER4 = 2,                 /* 198.18.0.1 is the guest's own */
};

static size_t slot_of(const struct egress_name *name)
{
	uint32_t hash = 2166136261U; /* FNV-1a */

	for (const char *at = name->text; *at; at++)
		hash = (hash ^ (uint8_t) *at) * 16777619U;
	return hash & (EGRESS_NAMES_SLOTS - 1);
}

/* Where it is, or the free slot where it belongs: there always is one, since the table is never over half full. */
static size_t look_up(const struct egress_names *names, const struct egress_name *name)
{
	size_t slot = slot_of(name);

	while (names->slots[slot] &&
	       strcmp(names->hosts[names->slots[slot] - 1]->name.text, name->text) != 0)
		slot = (slot + 1) & (EGRESS_NAMES_SLOTS - 1);
	return slot;
}

struct egress_host *egress_names_find(const struct egress_names *names,
                                      const struct egress_name *name)
{
	const size_t slot = look_up(names, name);

	return names->slots[slot] ? names->hosts[names->slots[slot] - 1] : NULL;
}

int egress_names_add(struct egress_names *names, const struct egress_name *name,
                     struct egress_host **ret_host)
{
	const size_t slot = look_up(names, name);
	struct egress_host *host;

	if (names->slots[slot]) {
		*ret_host = names->hosts[names->slots[slot] - 1];
		return 0;
	}
	if (names->count >= EGRESS_NAMES_MAX)
		return -ENOSPC;
	if (!names->hosts)
		names->hosts = calloc(EGRESS_NAMES_MAX, sizeof(struct egress_host *));
	host = names->hosts ? calloc(1, sizeof(*host)) : NULL;
	if (!host)
		return -ENOMEM;
	host->name = *name;
	host->number = (uint32_t) names->count;
	names->hosts[names->count++] = host;
	names->slots[slot] = (uint16_t) names->count;
	*ret_host = host;
	return 0;
}

void egress_names_done(struct egress_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->hosts[i]);
	free(names->hosts);
	memset(names, 0, sizeof(*names));
}

struct in_addr egress_address4(uint32_t number)
{
	return (struct in_addr){ htonl((uint32_t) FIRST4 + FIRST_NUMBER4 + number) };
}

struct in6_addr egress_address6(uint32_t number)
{
	struct in6_addr address = { .s6_addr = { 0x20, 0x01, 0x00, 0x02 } };
	const uint32_t low = htonl(FIRST_NUMBER4 + number);

	memcpy(&address.s6_addr[12], &low, sizeof(low));
	return address;
}

bool egress_is_made_up4(const uint8_t a[4])
{
	return a[0] == 198 && (a[1] & 0xfe) == 18;
}

static bool number_of(const uint8_t low[4], uint32_t first, uint32_t *ret_number)
{
	const uint32_t value = (uint32_t) low[0] << 24 | (uint32_t) low[1] << 16 |
	                       (uint32_t) low[2] << 8 | low[3];

	*ret_number = value - first;
	return value >= first && *ret_number < EGRESS_NAMES_MAX;
}

bool egress_number4(const uint8_t a[4], uint32_t *ret_number)
{
	return number_of(a, (uint32_t) FIRST4 + FIRST_NUMBER4, ret_number);
}

bool egress_number6(const uint8_t a[16], uint32_t *ret_number)
{
	static const uint8_t high[12] = { 0x20, 0x01, 0x00, 0x02 };

	return memcmp(a, high, sizeof(high)) == 0 &&
	       number_of(a + sizeof(high), FIRST_NUMBER4, ret_number);
}
