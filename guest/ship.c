/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "guest/ship.h"

int ship_send(struct ship *ship, const char *key, const void *bytes, size_t len, uint32_t *ret_put,
              struct resoluto_err *err)
{
	uint32_t put;
	int r = ship->ops->begin(ship, key, len, &put, err);

	if (r == 0 && len > 0)
		r = ship->ops->data(ship, put, bytes, len, err);
	/* A refusal is heard again by whoever waits for the put. */
	if (r == -EAGAIN || r == -ENOSPC)
		r = 0;
	if (r == 0)
		r = ship->ops->end(ship, put, err);
	if (r < 0)
		return r;
	*ret_put = put;
	return 0;
}

int ship_settle(struct ship *ship, const char *key, const void *bytes, size_t len, uint32_t put,
                struct resoluto_err *err)
{
	int pause_ms = SHIP_AGAIN_MS;

	for (int tries = 0;; tries++) {
		int r = ship->ops->wait(ship, put, err);

		if (r != -EAGAIN || tries == SHIP_TRIES)
			return r;
		r = ship->ops->pause(ship, pause_ms, err);
		if (r == 0)
			r = ship_send(ship, key, bytes, len, &put, err);
		if (r < 0)
			return r;
		pause_ms = pause_ms * 2 > SHIP_AGAIN_MAX_MS ? SHIP_AGAIN_MAX_MS : pause_ms * 2;
	}
}
