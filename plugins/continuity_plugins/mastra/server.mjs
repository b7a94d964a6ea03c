// A server of Mastra as its documentation builds one: one agent with memory, behind Mastra's own routes on Hono.
// It adds nothing to them. Arguments: the folder of the packages, the port, the URL of the model, the file of the database.
import { createRequire } from 'node:module';

const [modules, port, model, database] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const { Mastra } = load('@mastra/core');
const { Agent } = load('@mastra/core/agent');
const { LibSQLStore } = load('@mastra/libsql');
const { Memory } = load('@mastra/memory');
const { MastraServer } = load('@mastra/hono');
const { Hono } = load('hono');
const { serve } = load('@hono/node-server');

const storage = new LibSQLStore({ id: 'store', url: `file:${database}` });
const agent = new Agent({
  id: 'agent',
  name: 'agent',
  instructions: 'Answer.',
  model: { id: 'probe/probe', url: model, apiKey: 'none' },
  memory: new Memory({ storage }),
});
const mastra = new Mastra({ agents: { agent }, storage });
const app = new Hono();
app.get('/health', (context) => context.json({ status: 'ok' }));
await new MastraServer({ app, mastra }).init();
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(port) });
