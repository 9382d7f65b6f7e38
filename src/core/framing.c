/* SPDX-License-Identifier: MIT */
/*
 * Header lines of the `Content-Length:` framing that some peers use instead
 * of lines (the base protocol of LSP).
 */
#include <string.h>
#include <strings.h>

#include "relay_impl.h"

static bool
begins(const char *line, size_t n, const char *name)
{
	size_t k = strlen(name);

	return n >= k && strncasecmp(line, name, k) == 0;
}

/*
 * Classify a header line without its LF; a length goes to *len_r. Not more
 * than 15 digits are accepted: no body is that long.
 */
enum header_kind
framing_header(const char *line, size_t n, uint64_t *len_r)
{
	static const char name[] = "Content-Length:";
	uint64_t length = 0;
	unsigned digits = 0;
	size_t i;

	while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	if (n == 0)
		return HEADER_END;
	if (begins(line, n, "Content-Type:"))
		return HEADER_OTHER;
	if (!begins(line, n, name))
		return HEADER_NONE;
	i = sizeof name - 1;
	while (i < n && (line[i] == ' ' || line[i] == '\t'))
		i++;
	for (; i < n && line[i] >= '0' && line[i] <= '9'; i++, digits++)
		length = length * 10 + (uint64_t)(line[i] - '0');
	if (i < n || digits == 0 || digits > 15)
		return HEADER_NONE;
	*len_r = length;
	return HEADER_LENGTH;
}
