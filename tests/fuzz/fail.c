/* SPDX-License-Identifier: MIT */
/* What a test of Check's would do here is to abort. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

void
kit_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}
