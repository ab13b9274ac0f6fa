/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_address.c - four bytes or sixteen: whatever has a refused IPv4 address within is refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static enum egress_address_class inner(const uint8_t *at, uint8_t mask)
{
	struct in_addr address;
	uint8_t bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = at[i] ^ mask;
	memcpy(&address, bytes, sizeof(address));
	return egress_address_classify4(address);
}

static void check6(const struct in6_addr *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
	static const uint8_t teredo[4] = { 0x20, 0x01, 0, 0 };
	const uint8_t *at = address->s6_addr;
	enum egress_address_class got = egress_address_classify6(address);

	require(egress_address_class_name(got) != NULL && got != EGRESS_ADDRESS_OTHER);
	if (memcmp(at, mapped, 12) == 0 || memcmp(at, nat64, 12) == 0)
		require(got == inner(at + 12, 0));
	else if (memcmp(at, teredo, 4) == 0 && inner(at + 12, 0xff) != EGRESS_ADDRESS_PUBLIC)
		require(got == inner(at + 12, 0xff));
	else if (at[0] == 0x20 && at[1] == 0x02 && inner(at + 2, 0) != EGRESS_ADDRESS_PUBLIC)
		require(got == inner(at + 2, 0));
	else if (at[0] >> 5 != 1)
		require(got != EGRESS_ADDRESS_PUBLIC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in6_addr address;

	if (size == 4)
		require(inner(data, 0) < EGRESS_ADDRESS_OTHER);
	if (size != sizeof(address))
		return 0;
	memcpy(&address, data, sizeof(address));
	check6(&address);
	return 0;
}
