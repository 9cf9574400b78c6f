import { createManualClock } from "@portico/adapters/clock/manual";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { ports } from "@portico/core";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { createMemories, type MemoryDocument } from "../../../plugins/src/conversations-runs/memory/memories.ts";
import { memoryTools } from "../../../plugins/src/conversations-runs/memory/memory-tools.ts";
import { askedTurnsPort } from "../../../plugins/src/conversations-runs/runtime/asked-turns.ts";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

let service: AgentService;
const undo: (() => void)[] = [];
afterEach(async () => {
  await service?.close();
  for (const step of undo.splice(0)) step();
});
const start = async (options: AgentServiceOptions) => void (service = await startAgentService(options));
const keeper = { name: "Keeper", engine: "scripted", memory: true };
const remembered = async (agentId = "keeper") =>
  (await service.call("member", "GET", `/api/agents/${agentId}/memory`)).body.documents.map(({ name }: any) => name);
/** Each turn writes a document with the name of its prompt. */
const writing = () =>
  service.engine.otherwise(async ({ input, tools }, { say, callTool, signal }) => {
    const [part] = input;
    const name = part?.type === "text" ? part.text : "";
    await callTool({ toolId: "WriteMemory", arguments: { name, text: "x" } }, signal);
    await say({ type: "text", delta: tools.map(({ id }) => id).join(" ") });
  });

describe("turns without a conversation", () => {
  const background = {
    agentId: "keeper",
    userId: "member",
    maxTurns: 5,
    origin: { origin: "webhook", displayName: "event" },
  } as const;
  const ended = (runId: string) =>
    expect.poll(async () => (await service.call("owner", "GET", `/api/runs/${runId}`)).body.status).toBe("completed");

  it("in the background have the memory of the user who owns them", async () => {
    await start({ agents: new Map([["keeper", keeper]]) });
    writing();
    const { runId } = await service.app.port(ports.backgroundTurns).start({ ...background, prompt: "event" });
    await ended(runId);
    expect(await remembered()).toEqual(["event"]);
  });

  it("with a list of tools have only those tools of the memory that the list names", async () => {
    await start({ agents: new Map([["keeper", keeper]]) });
    writing();
    for (const toolIds of [[], ["WriteMemory"]]) {
      const prompt = `with ${toolIds.length}`;
      const { runId } = await service.app.port(ports.backgroundTurns).start({ ...background, prompt, toolIds });
      await ended(runId);
      const { body } = await service.call("member", "GET", `/api/runs/${runId}/receipt`);
      expect(body.receipts[0].output).toBe(toolIds.join(" "));
    }
    expect(await remembered()).toEqual(["with 1"]);
  });

  it("that a caller asks have the memory of the caller's user", async () => {
    await start({ agents: new Map([["keeper", keeper]]) });
    writing();
    const asking = {
      agentId: "keeper",
      userId: "member",
      prompt: "asked",
      history: [],
      input: [{ type: "text", text: "asked" }],
    } as const;
    const events = service.app
      .port(askedTurnsPort)
      .ask({ ...asking, origin: { origin: "test", displayName: "a test" } }, AbortSignal.timeout(60_000));
    for await (const event of events) if (event.type === "ended") expect(event.end.status).toBe("completed");
    expect(await remembered()).toEqual(["asked"]);
  });
});

it("a turn that waited for the approval of a write goes on with it, and writes once", async () => {
  const asking = { name: "Asking", memory: true, toolPolicy: { tools: { WriteMemory: "ask" } } };
  await start({ agents: new Map([["asking", asking]]) });
  const client = await service.connect("member");
  const { clientRequestId } = await client.start("use WriteMemory", {}, { agentId: "asking" });
  const waiting = async () => (await service.call("member", "GET", "/api/approvals")).body.approvals;
  await expect.poll(waiting).toMatchObject([{ toolId: "WriteMemory", riskLevel: "medium" }]);
  expect(await remembered("asking")).toEqual([]);
  const [{ runId, callId }] = await waiting();
  const path = `/api/runs/${runId}/approvals/${callId}`;
  const args = { name: "Approved", text: "by a person" };
  expect((await service.call("member", "POST", path, { decision: "approve", arguments: args })).status).toBe(200);
  expect((await client.ended(clientRequestId)).event).toBe("query:complete");
  expect((await service.call("member", "GET", "/api/agents/asking/memory/Approved")).body).toMatchObject({
    ...{ text: "by a person", writtenBy: "agent" },
  });
});

it("a turn that was stopped writes nothing after its end, so that nothing comes back after the erasure of its user", async () => {
  const { records } = createMemoryRecords();
  const stopping = new AbortController();
  /** Answers after the turn was stopped. */
  const slow: ports.Records = {
    ...records,
    collection(spec) {
      const collection = records.collection(spec);
      const get: typeof collection.get = async (id) => {
        const found = await collection.get(id);
        stopping.abort(new Error("stopped"));
        return found;
      };
      return { ...collection, get } as any;
    },
  };
  const owner = { userId: "ada", agentId: "keeper" };
  const clock = createManualClock();
  const tools = memoryTools({ memories: createMemories(slow), clock }, owner, { maxDocuments: 2, maxCharacters: 100 });
  const call = {
    toolId: "WriteMemory",
    arguments: { name: "late", text: "x" },
    caller: { ...owner, runId: "r", providerId: "p" },
  };
  await expect(tools.call(call, stopping.signal)).rejects.toThrow("stopped");
  expect(await createMemories(records).read(owner)).toEqual([]);
});

it("memories in which nothing changed for as long as `agent.keepMemories` are erased", async () => {
  const folder = temporaryFolder();
  undo.push(() => folder.remove());
  const agents = new Map(["keeper", "other"].map((id) => [id, keeper]));
  const day = 24 * 3_600_000;
  /** The next process on the same stores, this many days after the first one. */
  const startAt = async (days: number) => {
    await service?.close();
    const clock = createManualClock({ startAt: new Date(Date.parse("2030-01-01T00:00:00Z") + days * day).toISOString() });
    await start({ clock, agents, dataDir: folder.path, runtime: { keepMemories: "2d" } });
    return clock;
  };
  const write = (agentId: string) =>
    service.call("member", "PUT", `/api/agents/${agentId}/memory/a`, { text: "x" }, { "if-none-match": "*" });
  await startAt(0);
  await write("keeper");
  await startAt(1.5);
  await write("other");
  const clock = await startAt(2.1);
  await expect
    .poll(async () => {
      await clock.advance(61_000);
      return remembered();
    })
    .toEqual([]);
  expect(await remembered("other")).toEqual(["a"]);
});

it("a memory is what its accepted changes made of it, in any order, and keeps its bounds", async () => {
  const step = fc.record({
    name: fc.constantFrom("a", "b", "c", "d"),
    text: fc.option(fc.constantFrom("one", "two", "three"), { nil: undefined }),
    expects: fc.constantFrom("present", "absent", "stale", "any"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const memories = createMemories(createMemoryRecords().records);
      const owner = { userId: "ada", agentId: "keeper" };
      const model = new Map<string, MemoryDocument>();
      for (const [at, { name, text, expects }] of steps.entries()) {
        const before = model.get(name);
        const expected = expects === "stale" ? "stale" : expects === "absent" ? "absent" : before?.version;
        if (text === undefined) {
          const version = expects === "any" ? undefined : expected;
          const { status } = await memories.erase(owner, name, version, at);
          const isMet = version === undefined || version === before?.version;
          expect(status).toBe(!before ? "missing" : isMet ? "done" : "changed");
          if (status === "done") model.delete(name);
          continue;
        }
        const change = await memories.write(
          owner,
          { name, text, writtenBy: "agent", expected: expected ?? "absent", maxDocuments: 3 },
          at,
        );
        const isMet = before?.text === text || (expected ?? "absent") === (before?.version ?? "absent");
        expect(change.status).toBe(!isMet ? "changed" : !before && model.size >= 3 ? "full" : "done");
        if (change.status === "done") model.set(name, change.document);
        if (change.status === "done") expect(change.document.text).toBe(text);
      }
      const expectedNames = [...model.keys()].toSorted();
      expect((await memories.read(owner)).map(({ name }) => name)).toEqual(expectedNames);
      for (const document of await memories.read(owner)) expect(document).toEqual(model.get(document.name));
      expect(await memories.eraseUser("ada")).toBe(model.size);
      expect(await memories.read(owner)).toEqual([]);
    }),
  );
});
