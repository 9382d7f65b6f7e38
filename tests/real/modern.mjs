// SPDX-License-Identifier: MIT
//
// A server on the official SDK 2.x, which speaks the legacy protocol and the
// modern one (2026-07-28).
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'modern', version: '1' },
    { capabilities: { tools: {} } });
  server.registerTool('add', {
    description: 'a sum',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  }, async ({ a, b }) => ({
    content: [{ type: 'text', text: String(a + b) }],
    structuredContent: { sum: a + b },
  }));
  server.registerTool('text', {
    description: 'much text',
    inputSchema: z.object({ n: z.number() }),
  }, async ({ n }) => ({
    content: [{ type: 'text', text: 'é'.repeat(n) }],
  }));
  const rows = async ({ chars, n }) => ({
    content: [{ type: 'text', text: 'row '.repeat(chars / 4) }],
    structuredContent: { rows: Array.from({ length: n }, (_, i) => i) },
  });
  const sizes = z.object({ chars: z.number(), n: z.number() });
  server.registerTool('rows-schema', { inputSchema: sizes,
    outputSchema: z.object({ rows: z.array(z.number()) }) }, rows);
  server.registerTool('rows-plain', { inputSchema: sizes }, rows);
  return server;
});
