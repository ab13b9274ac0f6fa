/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/names.h"

static const uint32_t first_v4 = 0xc6120000; /* 198.18.0.0 */
static const uint8_t first_v6[16] = { 0x20, 0x01, 0x00, 0x02 };

int names_number(struct names *names, const struct egress_name *name)
{
	struct egress_name **items, *copy;

	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i]->text, name->text) == 0)
			return NAMES_FIRST + (int) i;
	}
	if (names->count == NAMES_MAX)
		return -ENOSPC;
	items = reallocarray(names->items, names->count + 1, sizeof(struct egress_name *));
	if (!items)
		return -ENOMEM;
	names->items = items;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *name;
	items[names->count++] = copy;
	return NAMES_FIRST + (int) names->count - 1;
}

void names_done(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
	*names = (struct names){ 0 };
}

struct in_addr names_v4(int number)
{
	return (struct in_addr){ .s_addr = htonl(first_v4 + (uint32_t) number) };
}

struct in6_addr names_v6(int number)
{
	const uint32_t last = htonl((uint32_t) number);
	struct in6_addr address;

	memcpy(&address, first_v6, sizeof(first_v6));
	memcpy(&address.s6_addr[12], &last, sizeof(last));
	return address;
}

static const struct egress_name *find(const struct names *names, uint32_t number)
{
	const uint32_t at = number - NAMES_FIRST;

	return number >= NAMES_FIRST && at < names->count ? names->items[at] : NULL;
}

const struct egress_name *names_find_v4(const struct names *names, struct in_addr address)
{
	/* Below the first it is a large number, which no name has. */
	return find(names, ntohl(address.s_addr) - first_v4);
}

const struct egress_name *names_find_v6(const struct names *names, const struct in6_addr *address)
{
	uint32_t number;

	if (memcmp(address, first_v6, 12) != 0)
		return NULL;
	memcpy(&number, &address->s6_addr[12], sizeof(number));
	return find(names, ntohl(number));
}
