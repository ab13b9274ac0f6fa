/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * turn.h - how long a turn on the processor this thread asks for.
 *
 * Who only passes messages on has little to do, and others wait for it: with a short turn the kernel lets it run at once,
 * instead of at the end of the turn of whoever computes.  No more time in all comes of it.  Linux heeds it from 6.12 on;
 * before, only the mark stays that what this thread starts gets the usual turn and rank.
 */

/* For this thread alone, and for good: what it starts (threads, processes) gets the usual turn.  Not if it has a policy or a
 * higher rank of its own, and a refusal is no failure: nothing depends on it. */
void turn_make_short(void);
