import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { functionTools } from "@portico/adapters/tools/functions";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { defineAdapter, orAborted, ports } from "@portico/core";
import { agentDocuments } from "@portico/operator/agent-documents";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { agentRuntimePort } from "../../../plugins/src/conversations-runs/runtime/agent-runtime.ts";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { startRawMcpServer } from "../../harness/raw-mcp-server.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const object = { type: "object" };
const tools = [
  "good",
  "no-such-tool",
  "shop/good",
  "shop/strange",
  "shop/unknown",
  "shop/ahead",
  "away/any",
  "SendUserMessage",
  "ReadMemory",
  "ReadResource",
];
const skills = ["skills/colon", "skills/good", "skills/missing", "skills/renamed"];
const agent = { name: "Clerk", provider: "demo", model: "demo", tools, skills, outputSchema: { pattern: "^(?!x)" } };
const files = {
  "agent.json": JSON.stringify(agent),
  "skills/colon/SKILL.md": "---\nname: colon\ndescription: Reads bills: all of them.\n---\n",
  "skills/good/SKILL.md": '---\nname: good\ndescription: "Reads bills: all of them."\n---\n',
  "skills/renamed/SKILL.md": "---\nname: other\ndescription: Reads bills.\n---\n",
};

let folder: ReturnType<typeof temporaryFolder>;
let service: AgentService;
const undo: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder.path, "clerk", name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const shop = await startRawMcpServer([
    { name: "good", inputSchema: object },
    { name: "strange", inputSchema: { type: "string" } },
    { name: "ahead", inputSchema: { ...object, properties: { a: { pattern: "(?=x)" } } } },
  ]);
  const closed = await startRawMcpServer([]);
  await closed.close();
  undo.push(() => shop.close());
  service = await startAgentService({
    agentsDir: folder.path,
    plugins: [agentDocuments({})],
    adapters: [
      functionTools({ tools: [{ ...toolOf("good"), run: async () => "done" }] }),
      mcpTools({ id: "shop", url: shop.url }),
      mcpTools({ id: "away", url: closed.url }),
    ],
  });
  await expect.poll(() => service.app.port(ports.tools).map((source) => source.problems?.().length)).toEqual([undefined, 2, 1]);
});
afterEach(async () => {
  await service.close();
  for (const step of undo.splice(0)) await step();
  folder.remove();
});

const UNKNOWN = "No source has a tool with this ID";
const expected = [
  ["tools", "no-such-tool", UNKNOWN],
  ["tools", "shop/strange", "The schema of its arguments is not of type object"],
  ["tools", "shop/unknown", UNKNOWN],
  ["tools", "shop/ahead", expect.stringContaining("RE2")],
  ["tools", "away/any", "The MCP server cannot be reached (ECONNREFUSED)"],
  ["tools", "ReadMemory", "The agent has no memory: `memory` switches it on"],
  ["tools", "ReadResource", "The agent has no resources: name them in `resources`"],
  ["skills", "skills/colon", expect.stringContaining("a text with a colon and a blank needs quotes")],
  ["skills", "skills/missing", expect.stringContaining("has no SKILL.md")],
  ["skills", "skills/renamed", "Its name is not that of its folder"],
  ["outputSchema", "outputSchema", expect.any(String)],
];

it("the owner's list of agents names what an agent lacks, with the reason; lists of others do not", async () => {
  const problemsFor = async (holder: "owner" | "member") =>
    (await service.call(holder, "GET", "/api/agents")).body.agents[0].problems as any[] | undefined;
  expect((await problemsFor("owner"))?.map(({ at, name, message }) => [at, name, message])).toEqual(expected);
  expect(await problemsFor("member")).toBeUndefined();
});

it("an agent.json in UTF-16 is unreadable, and the owner's list says why", async () => {
  const text = Buffer.from(`\ufeff${JSON.stringify(agent)}`, "utf16le");
  const file = join(folder.path, "utf16", "agent.json");
  mkdirSync(dirname(file));
  writeFileSync(file, text);
  const listed = async (holder: "owner" | "member") =>
    (await service.call(holder, "GET", "/api/agents")).body.agents.find(({ id }: { id: string }) => id === "utf16");
  await expect
    .poll(() => listed("owner"))
    .toMatchObject({
      metadataError: "unreadable",
      problems: [{ at: "document", name: "agent.json", message: "is UTF-16 text: save it as UTF-8" }],
    });
  expect((await listed("member")).problems).toBeUndefined();
});

it("checking a text names them as warnings at their places", async () => {
  const text = JSON.stringify(agent, undefined, 2);
  const { body } = await service.call("owner", "POST", "/api/agents/clerk/document/check", { text });
  const lineOf = (name: string) => text.split("\n").findIndex((line) => line.includes(`"${name}"`)) + 1;
  expect(body.problems.map(({ severity, line, message }: any) => [severity, line, message])).toEqual(
    expected.map(([at, name, message]) => [
      "warning",
      lineOf(name as string),
      at === "outputSchema" ? message : expect.any(String),
    ]),
  );
  expect(body.problems[0]).toMatchObject({ path: "$.tools[1]", message: `no-such-tool: ${UNKNOWN}` });
});

it("the log of a turn names them with their reasons", async () => {
  writeFileSync(join(folder.path, "clerk/agent.json"), JSON.stringify({ ...agent, outputSchema: undefined }));
  const client = await service.connect("owner");
  const { clientRequestId } = await client.start("hello", {}, { agentId: "clerk" });
  await client.ended(clientRequestId);
  const told = service.telemetry.lines
    .filter(({ message }) => message.includes("of an agent cannot be"))
    .map(({ message, fields }) => ({ message, ...fields }));
  const saidOf = (name: string) => told.find(({ tool, skill }: any) => tool === name || skill === name);
  expect(saidOf("shop/unknown")).toMatchObject({
    message: "A tool of an agent cannot be offered",
    reason: "No source that can be reached has a tool with this ID",
  });
  expect(saidOf("away/any")).toMatchObject({
    message: "A tool of an agent cannot be offered",
    reason: "The MCP server cannot be reached (ECONNREFUSED)",
  });
  expect(saidOf("skills/renamed")).toMatchObject({
    ...{ message: "A skill of an agent cannot be used", agent: "clerk" },
    reason: "Its name is not that of its folder",
  });
});

it("the list of agents does not wait for a schema whose check takes long", async () => {
  const { checks } = service.app.port(agentRuntimePort);
  vi.spyOn(checks, "inspect").mockImplementation((_schema, options) => orAborted(new Promise(() => {}), options?.signal));
  const { status, body } = await service.call("owner", "GET", "/api/agents");
  expect([status, body.agents[0].problems.map(({ at }: any) => at)]).toEqual([200, expected.slice(0, -1).map(([at]) => at)]);
});

const brokenSource = defineAdapter({
  name: "tools/broken",
  port: ports.tools,
  needs: {},
  open: (_given, { id, list }: Pick<ports.ToolSource, "id" | "list">): ports.ToolSource => ({
    ...{ id, list },
    problems() {
      throw new Error("a defect");
    },
    call: () => Promise.reject(new Error("not called")),
  }),
});

it("sources that fail, or that never answer and ignore their signal, delay neither the list of agents nor the stop of a turn", async () => {
  const asked = Promise.withResolvers<void>();
  await using broken = await startAgentService({
    agents: new Map([["clerk", { name: "Clerk", tools: ["any"] }]]),
    adapters: [
      brokenSource({
        id: "throws",
        list() {
          throw new Error("a defect");
        },
      }),
      brokenSource({
        id: "silent",
        list() {
          asked.resolve();
          return new Promise(() => {});
        },
      }),
    ],
  });
  const { status, body } = await broken.call("owner", "GET", "/api/agents");
  expect([status, body.agents[0].problems]).toEqual([
    200,
    [{ at: "tools", name: "any", message: "Tools of throws, silent cannot be listed now" }],
  ]);
  const client = await broken.connect("owner");
  const { clientRequestId } = await client.start("hello", {}, { agentId: "clerk" });
  await asked.promise;
  client.socket.emit("query:abort", { clientRequestId });
  expect((await client.ended(clientRequestId)).data).toMatchObject({ terminal: { status: "interrupted", reason: "user_stop" } });
});
