import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { type LoopedAgents, startLoopedAgents } from "../../harness/looped-agents.ts";
import { referenceMcpServer } from "../../harness/oracle.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { events } from "../../harness/upstream-answers.ts";

/** A reference server, as its documentation starts it. */
const serverOf = (id: string, name: string, options: { args?: readonly string[]; env?: Record<string, string> }) =>
  mcpTools({
    ...{ id, command: process.execPath, args: [referenceMcpServer(name), ...(options.args ?? [])] },
    ...(options.env && { env: options.env }),
  });

let folder: ReturnType<typeof temporaryFolder>;
/** Without symbolic links, because the file-system server compares real paths. */
let home: string;
let looped: LoopedAgents;
beforeEach(async () => {
  folder = temporaryFolder();
  home = realpathSync(folder.path);
  const tools = [
    ...["read_text_file", "write_file", "move_file"].map((name) => `files/${name}`),
    ...["create_entities", "read_graph"].map((name) => `memory/${name}`),
  ];
  // As its server describes it, writing to the memory is of medium risk, and asks no person by itself.
  const toolPolicy = { tools: { "memory/create_entities": "ask" } };
  looped = await startLoopedAgents(
    { writer: { provider: "messages", model: "echo-large", tools, toolPolicy } },
    {
      adapters: [
        serverOf("files", "filesystem", { args: [home] }),
        serverOf("memory", "memory", { env: { MEMORY_FILE_PATH: join(home, "memory.jsonl") } }),
      ],
    },
  );
});
afterEach(async () => {
  await looped[Symbol.asyncDispose]();
  folder.remove();
});

/** Lets the model call a tool, decides the call, and returns the result that the model gets. */
async function decided(name: string, input: object, body: object) {
  const { client, service, upstream } = looped;
  upstream.answerNext(events(answerEvents("messages", { calls: [{ id: `call_${name}`, name, input }] })));
  const { clientRequestId } = await client.start("go", {}, { agentId: "writer" });
  const { runId } = await client.event("query:started", clientRequestId);
  const contents = (type: string) =>
    client.of(clientRequestId).flatMap(({ data: { message } }) => (message?.type === type ? [message.content] : []));
  await expect.poll(() => contents("approval")).toHaveLength(1);
  const isThere = { file: existsSync(join(home, "note.txt")), memory: existsSync(join(home, "memory.jsonl")) };
  expect(isThere).toEqual({ file: false, memory: false });
  const [{ callId }] = contents("approval");
  expect((await service.call("owner", "POST", `/api/runs/${runId}/approvals/${callId}`, body)).status).toBe(200);
  await client.ended(clientRequestId);
  const [{ result }] = contents("tool_result");
  return { isError: result.isError, text: result.content.map(({ text }: any) => text).join("\n") as string };
}

describe("the reference file-system server", () => {
  const write = () => ({ path: join(home, "note.txt"), content: "a note" });

  it("writes a file once a person has approved it, and reads it without asking", async () => {
    expect((await decided("files_write_file", write(), { decision: "approve" })).isError).toBe(false);
    expect(readFileSync(join(home, "note.txt"), "utf8")).toBe("a note");
    const read = { id: "call_read", name: "files_read_text_file", input: { path: join(home, "note.txt") } };
    looped.upstream.answerNext(events(answerEvents("messages", { calls: [read] })));
    const { data, receipt } = await looped.ask("writer", "read it");
    expect(data.terminal.status).toBe("completed");
    expect(receipt.tool_calls).toMatchObject([{ tool_id: "files/read_text_file", is_error: false }]);
  });

  it("writes what the person changed", async () => {
    const args = { path: join(home, "other.txt"), content: "another note" };
    const { isError, text } = await decided("files_write_file", write(), { decision: "approve", arguments: args });
    expect([isError, text]).toEqual([false, expect.stringContaining("another note")]);
    expect(readFileSync(join(home, "other.txt"), "utf8")).toBe("another note");
    expect(existsSync(join(home, "note.txt"))).toBe(false);
  });

  it("writes nothing that a person rejected", async () => {
    const result = await decided("files_write_file", write(), { decision: "reject", comment: "Keep it clean" });
    expect(result).toEqual({ isError: true, text: "A person rejected this call: Keep it clean" });
    expect(existsSync(join(home, "note.txt"))).toBe(false);
  });
});

describe("the reference memory server", () => {
  const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];

  it("remembers once a person has approved it", async () => {
    expect((await decided("memory_create_entities", { entities }, { decision: "approve" })).isError).toBe(false);
    expect(JSON.parse(readFileSync(join(home, "memory.jsonl"), "utf8"))).toMatchObject({ type: "entity", name: "Ada" });
  });

  it("remembers nothing that a person rejected", async () => {
    expect((await decided("memory_create_entities", { entities }, { decision: "reject" })).isError).toBe(true);
    expect(existsSync(join(home, "memory.jsonl"))).toBe(false);
  });
});
