/* SPDX-License-Identifier: MIT */
/*
 * What hosts are known to survive, as option values with their sources.
 * Only figures that someone has read or measured stand here; a host whose
 * limit is unknown has no preset. Byte limits stand for the hosts' limits in
 * characters: never looser, as a character has at least one byte.
 */
#include "spillway/presets.h"

#include <stddef.h>
#include <string.h>

const struct preset presets[] = {
	{ "claude-code", { { "max-content", "50000" } },
	    "A result over 50,000 characters is replaced by the path of a "
	    "file, one\nover 25,000 tokens by an error. "
	    "_meta[\"anthropic/maxResultSizeChars\"]\n"
	    "of a tool raises the limit here as it does there.",
	    "https://code.claude.com/docs/en/mcp" },
	{ "claude-desktop", { { "max-content", "1000000" } },
	    "\"Tool result is too large. Maximum size is 1MB\" (reported; no\n"
	    "official figure). Requests time out after about 60 s.",
	    "https://github.com/anthropics/claude-code/issues/66519" },
	{ "cline", { { "request-timeout", "60s" } },
	    "Requests time out after 60 s unless \"timeout\" says otherwise: "
	    "then\ngive --request-timeout too.",
	    "https://github.com/cline/cline sdk/packages/shared/src/mcp.ts" },
	{ "codex", { { "request-timeout", "300s" } },
	    "Tool calls time out after 300 s unless tool_timeout_sec says\n"
	    "otherwise (then give --request-timeout too), and no cancel is "
	    "sent.\nSizes are cut by tokens, differently per model.",
	    "https://github.com/openai/codex "
	    "codex-rs/codex-mcp/src/rmcp_client.rs,\n    issue 26956" },
	{ "gemini", { { "max-content", "40000" },
	    { "request-timeout", "600s" } },
	    "tools.truncateToolOutputThreshold is 40,000 characters; "
	    "\"timeout\" is\n600,000 ms.",
	    "https://github.com/google-gemini/gemini-cli "
	    "docs/reference/configuration.md" },
	{ "goose", { { "max-content", "200000" } },
	    "A result over GOOSE_MAX_TOOL_RESPONSE_SIZE, 200,000 characters, "
	    "goes\nto a temporary file.",
	    "https://github.com/block/goose (environment variables)" },
	{ "opencode", { { "max-content", "50K" } },
	    "Results are cut at 2,000 lines or 50 KiB. stderr of a server is\n"
	    "ignored: use --metrics-file and --log-file.",
	    "https://github.com/sst/opencode pull request 23770" },
	{ "zed", { { "request-timeout", "60s" } },
	    "Requests time out after 60 s, and no cancel is sent then.",
	    "https://github.com/zed-industries/zed "
	    "crates/context_server/src/client.rs" },
	{ "typescript-sdk", { { "max-frame", "10420224" } },
	    "Hosts on the official SDK close the connection when more than 10 "
	    "MiB\nwait for a line end. This is the default.",
	    "https://github.com/modelcontextprotocol/typescript-sdk "
	    "pull request 2239" },
	{ "python-asyncio", { { "max-frame", "65535" } },
	    "Hosts that read lines by a StreamReader with its default limit.",
	    "https://docs.python.org/3/library/asyncio-stream.html" },
	{ "go-scanner", { { "max-frame", "65535" } },
	    "Hosts that read lines by a bufio.Scanner with its default buffer.",
	    "https://pkg.go.dev/bufio#pkg-constants" },
	{ NULL, { { NULL, NULL } }, NULL, NULL },
};

const struct preset *
preset_find(const char *name)
{
	const struct preset *p;

	for (p = presets; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}
