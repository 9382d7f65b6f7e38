/* SPDX-License-Identifier: MIT */
/*
 * Feeds a fuzz target the files it is given, and how each of them begins:
 * the corpus again, without libFuzzer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define LONGEST (1u << 20)
#define BEGINNINGS 16

static void
feed(const uint8_t *bytes, size_t n)
{
	uint8_t *exact = malloc(n > 0 ? n : 1); /* its end is watched */

	if (exact == NULL)
		exit(1);
	memcpy(exact, bytes, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

int
main(int argc, char **argv)
{
	uint8_t *bytes = malloc(LONGEST);

	if (bytes == NULL || argc < 2) {
		fprintf(stderr, "usage: %s FILE...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t n;

		if (f == NULL) {
			perror(argv[i]);
			return 1;
		}
		n = fread(bytes, 1, LONGEST, f);
		fclose(f);
		for (size_t k = 0; k < BEGINNINGS; k++)
			feed(bytes, n * k / BEGINNINGS);
		feed(bytes, n);
	}
	free(bytes);
	return 0;
}
