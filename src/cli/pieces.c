/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pieces.h"

struct piece_line {
	struct piece_line *next;
	size_t len, bytes;
	char text[];
};

void pieces_init(struct pieces *pieces, struct output *output, uint64_t max)
{
	*pieces = (struct pieces){ .output = output,
		                   .head_left = max ? max - max / 2 : UINT64_MAX,
		                   .held_max = max / 2 < SIZE_MAX ? (size_t) (max / 2) : SIZE_MAX };
}

static void drop_first(struct pieces *pieces)
{
	struct piece_line *line = pieces->first;

	pieces->first = line->next;
	pieces->held -= line->len;
	free(line);
}

void pieces_done(struct pieces *pieces)
{
	while (pieces->first)
		drop_first(pieces);
}

static int hold(struct pieces *pieces, const char *text, size_t len, size_t bytes)
{
	struct piece_line *line = malloc(sizeof(*line) + len);

	if (!line)
		return pieces->output->code = -ENOMEM;
	line->next = NULL;
	line->len = len;
	line->bytes = bytes;
	memcpy(line->text, text, len);
	if (pieces->first)
		pieces->last->next = line;
	else
		pieces->first = line;
	pieces->last = line;
	pieces->held += len;
	while (pieces->held > pieces->held_max) {
		pieces->dropped_pieces++;
		pieces->dropped_bytes += pieces->first->bytes;
		drop_first(pieces);
	}
	return 0;
}

int pieces_add(struct pieces *pieces, const char *line, size_t len, size_t bytes)
{
	if (pieces->output->code < 0)
		return pieces->output->code;
	if (len > pieces->head_left)
		pieces->head_left = 0;
	if (pieces->head_left == 0)
		return hold(pieces, line, len, bytes);
	if (pieces->head_left != UINT64_MAX)
		pieces->head_left -= len;
	return output_write(pieces->output, false, line, len);
}

static void print_dropped(struct pieces *pieces)
{
	char text[128];
	int len = snprintf(text, sizeof(text),
	                   "{\"dropped_pieces\":%" PRIu64 ",\"dropped_bytes\":%" PRIu64 "}\n",
	                   pieces->dropped_pieces, pieces->dropped_bytes);

	(void) output_write(pieces->output, false, text, (size_t) len);
}

int pieces_end(struct pieces *pieces)
{
	if (pieces->dropped_pieces > 0 && pieces->output->code == 0)
		print_dropped(pieces);
	for (; pieces->first && pieces->output->code == 0; drop_first(pieces))
		(void) output_write(pieces->output, false, pieces->first->text, pieces->first->len);
	return pieces->output->code;
}
