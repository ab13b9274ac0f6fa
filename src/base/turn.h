/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * turn.h - how long a turn on the processor this thread asks for.
 *
 * Who only passes messages on has little to do, and others wait for it: with a short turn the kernel lets it run at once,
 * instead of at the end of the turn of whoever computes.  No more time in all comes of it.  Linux heeds it from 6.12 on;
 * before, nothing happens.
 */

/* For this thread alone: what it starts (threads, processes) gets the usual turn.  Only a wish: nothing depends on it. */
void turn_make_short(void);
