// SPDX-License-Identifier: MIT
//
// The official TypeScript SDK clients behind one small interface:
// connect(server) -> { transport, list, call, close, closed }. A server is
// { command, args, env }. Runs in the folder where the packages are.
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 }
  from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 }
  from '@modelcontextprotocol/client/stdio';

const connectBy = (Client, Transport, options) => async (server) => {
  const client = new Client({ name: 'spillway-test', version: '1' },
    { capabilities: {}, ...options });
  const transport = new Transport({ stderr: 'ignore', ...server });
  let closed = false;
  client.onclose = () => { closed = true; };
  client.onerror = () => {};
  await client.connect(transport);
  return {
    transport,
    list: () => client.listTools(),
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
    closed: () => closed,
  };
};

export const clients = {
  'sdk-1': connectBy(Client1, Stdio1, {}),
  'sdk-2-legacy': connectBy(Client2, Stdio2, {}),
  'sdk-2-auto': connectBy(Client2, Stdio2,
    { versionNegotiation: { mode: 'auto' } }),
};
