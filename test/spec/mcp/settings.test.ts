import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createApp, Secret } from "@portico/core";
import { agent } from "@portico/presets/agent";
import { workflow, readPlatformOptions } from "@portico/presets/workflow";
import { expect, it } from "vitest";
import { listen } from "../../harness/mcp-http-server.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { readPage } from "../docs/pages.ts";

const TOKEN = "workflow-token-0123456789";

async function open(folder: string, mcp?: boolean) {
  const settings = { definitionsDir: join(folder, "workflows"), token: new Secret(TOKEN), ...(mcp !== undefined && { mcp }) };
  const keys = { dataDir: folder, autoProviders: false, log: { level: "silent" as const } };
  return createApp(workflow(await readPlatformOptions({ ...keys, workflow: settings }, { env: {} })));
}

it("the setting `workflow.mcp` switches the MCP server on; by default it is off", async () => {
  const folder = temporaryFolder();
  const statusOf = async (mcp?: boolean) => {
    await using app = await open(folder.path, mcp);
    const request = new Request("http://localhost/mcp", { method: "GET", headers: { authorization: `Bearer ${TOKEN}` } });
    return (await app.surface("workflow").fetch(request)).status;
  };
  // 405: the server opens no stream of its own.
  expect([await statusOf(), await statusOf(false), await statusOf(true)]).toEqual([404, 404, 405]);
  folder.remove();
});

it("the setting `agent.mcp` switches the MCP server on; by default it is off", async () => {
  const folder = temporaryFolder();
  const statusOf = async (mcp?: boolean) => {
    const tokens = [{ token: TOKEN, userId: "ada", role: "owner" as const }];
    const settings = { agentsDir: join(folder.path, "agents"), tokens, ...(mcp !== undefined && { mcp }) };
    const keys = { dataDir: folder.path, autoProviders: false, log: { level: "silent" as const } };
    await using app = await createApp(agent(await readPlatformOptions({ ...keys, agent: settings }, { env: {} })));
    const request = new Request("http://localhost/mcp", { method: "GET", headers: { authorization: `Bearer ${TOKEN}` } });
    return (await app.surface("agent").fetch(request)).status;
  };
  expect([await statusOf(), await statusOf(false), await statusOf(true)]).toEqual([404, 404, 405]);
  folder.remove();
});

it("the guide's workflow is a tool of the client that the guide's file describes", async () => {
  const { blocks } = await readPage("docs/guides/mcp-server.md");
  const blockOf = (language: string, word: string) =>
    blocks.find((block) => block.language === language && block.text.includes(word))!.text;
  const folder = temporaryFolder();
  mkdirSync(join(folder.path, "workflows"));
  writeFileSync(join(folder.path, "workflows/double.yaml"), blockOf("yaml", "name: Double"));
  await using app = await open(folder.path, true);
  const host = createServer(app.surface("workflow").node);
  const port = await listen(host);
  const { url, headers } = JSON.parse(
    blockOf("json", "mcpServers").replace("49153", String(port)).replace("${WORKFLOW_SERVICE_TOKEN}", TOKEN),
  ).mcpServers.workflows;
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  expect(client.getServerVersion()).toMatchObject({ name: "portico-workflows" });
  expect((await client.callTool({ name: "double", arguments: { n: 4 } })).content).toEqual([
    { type: "text", text: '{"result":8}' },
  ]);
  await client.close();
  host.closeAllConnections();
  host.close();
  folder.remove();
});
