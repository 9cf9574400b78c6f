import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { createSystemClock, ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { connectAgent } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { createArgumentsFault } from "../../../plugins/src/conversations-runs/turns/tool-arguments.ts";
import { openBrokenLine } from "../../harness/broken-line.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { createScriptedEngine, untilStopped } from "../../harness/scripted-agent.ts";

let folder: ReturnType<typeof temporaryFolder>;
const services: AgentService[] = [];
const undo: (() => void)[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const step of undo.splice(0)) step();
  for (const service of services.splice(0).reverse()) await service.close().catch(() => {});
  folder.remove();
});
async function open(options: AgentServiceOptions = {}): Promise<AgentService> {
  const service = await startAgentService({ dataDir: folder.path, ...options });
  services.push(service);
  return service;
}
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
/** As long as any poll takes at most: what is late tells of a busy machine. */
const within = <T>(promise: Promise<T>, ms = 30_000): Promise<T | "never"> =>
  Promise.race([promise, pause(ms).then(() => "never" as const)]);
const look = async (service: AgentService, clientRequestId: string) =>
  (
    await service.call("owner", "POST", "/api/query/client-requests/lookup", {
      agentId: "helper",
      requests: [{ clientRequestId }],
    })
  ).body.results[0].status;

/** The prompt `much` is answered with this many tool results of 50 KB. */
function saysMuch(service: AgentService, count: number): void {
  service.engine.on("much", async (_turn, { say }) => {
    for (let call = 1; call <= count; call++) {
      const result = { content: [{ type: "text" as const, text: "x".repeat(50_000) }], isError: false };
      await say({ type: "tool_result", callId: `c${call}`, toolId: "t", result });
    }
  });
}

const LARGE = 17 * 1024 * 1024;

describe("a turn whose end does not fit into a log entry", () => {
  it("its end is told, and the run rests", async () => {
    const service = await open();
    service.engine.on("large", async () => ({
      messages: [
        {
          role: "tool" as const,
          parts: [
            {
              type: "tool_result" as const,
              callId: "c",
              toolId: "t",
              name: "t",
              result: { content: [{ type: "image" as const, mimeType: "image/png", data: "A".repeat(LARGE) }], isError: false },
            },
          ],
        },
      ],
    }));
    const client = await service.connect();
    const { clientRequestId } = await client.start("large");
    const { runId } = await client.event("query:started", clientRequestId);
    expect.soft(await within(client.ended(clientRequestId))).not.toBe("never");
    expect.soft((await service.call("owner", "GET", `/api/runs/${runId}`)).body.status).not.toBe("running");
    expect.soft((await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts).toHaveLength(1);
  });

  it("the session goes on, and can be cleared, also after a restart", async () => {
    const service = await open();
    service.engine.on("large", async () => ({
      messages: [{ role: "assistant" as const, parts: [{ type: "text" as const, text: "A".repeat(LARGE) }] }],
    }));
    const client = await service.connect();
    const { clientRequestId } = await client.start("large");
    const { sessionId, conversationId } = await client.event("query:started", clientRequestId);
    await within(client.ended(clientRequestId));
    const next = await client.followUp(sessionId, "go on");
    expect.soft(next.status).toBe(202);
    expect.soft(await within(client.ended(next.clientRequestId))).not.toBe("never");
    expect.soft(await look(service, next.clientRequestId)).not.toBe("reserved");
    // The next process takes over.
    const after = await open();
    expect.soft(await look(after, next.clientRequestId)).not.toBe("reserved");
    expect.soft(await within(after.call("owner", "POST", `/api/conversations/${conversationId}/clear`))).not.toBe("never");
    const back = await after.connect();
    expect.soft((await back.start("again", {}, { conversationId })).status).toBe(202);
  });
});

describe("a log that is away for a moment when a turn begins", () => {
  it("the accepted turn is executed, now or after a restart", async () => {
    const service = await open();
    const client = await service.connect();
    const log = service.app.port(ports.log) as any;
    const real = log.appendAll;
    let count = 0;
    log.appendAll = (...args: unknown[]) =>
      ++count === 1 ? Promise.reject(new ports.LogUnavailable("disk full")) : real.apply(log, args);
    const { clientRequestId, status } = await client.start("hello");
    expect(status).toBe(202);
    const ended = await within(client.ended(clientRequestId));
    expect(count).toBeGreaterThan(0);
    expect.soft(ended).not.toBe("never");
    log.appendAll = real;
    await service.close();
    const second = await open();
    await expect.poll(() => look(second, clientRequestId)).toBe("committed");
    expect.soft([...service.engine.played, ...second.engine.played]).toEqual(["hello"]);
  });
});

describe("a log that is away until the service stops", () => {
  it("the turn is closed at the next start", async () => {
    const service = await open();
    const client = await service.connect();
    const log = service.app.port(ports.log) as any;
    let refused = 0;
    service.engine.on("hello", async () => {
      log.appendAll = () => (refused++, Promise.reject(new ports.LogUnavailable("disk full")));
    });
    const { clientRequestId } = await client.start("hello");
    const { runId } = await client.event("query:started", clientRequestId);
    await expect.poll(() => refused).toBeGreaterThan(0);
    await service.close();
    const second = await open();
    const status = async () => (await second.call("owner", "GET", `/api/runs/${runId}`)).body.status;
    await expect.poll(status).not.toBe("running");
  });
});

describe("a log that is away for a moment when a conversation is cleared", () => {
  it("the conversation is not busy for ever", async () => {
    const service = await open();
    const client = await service.connect();
    const { clientRequestId } = await client.start("hello");
    const { conversationId } = await client.event("query:started", clientRequestId);
    await client.ended(clientRequestId);
    const log = service.app.port(ports.log) as any;
    const real = log.remove;
    let count = 0;
    log.remove = (...args: unknown[]) =>
      ++count === 1 ? Promise.reject(new ports.LogUnavailable("away")) : real.apply(log, args);
    const clear = () => within(service.call("owner", "POST", `/api/conversations/${conversationId}/clear`));
    expect.soft(await clear()).not.toBe("never");
    expect.soft(await clear()).not.toBe("never");
    expect.soft((await client.start("again", {}, { conversationId })).status).toBe(202);
    await service.close();
    const after = await open();
    const back = await after.connect();
    expect.soft((await back.start("again", {}, { conversationId })).status).toBe(202);
  });
});

describe("a client that comes back while a turn talks that began without it", () => {
  it("gets its events in order, each once", async () => {
    const clock = createManualClock();
    const service = await open({ clock });
    const gate = Promise.withResolvers<void>();
    service.engine.on("first", () => gate.promise);
    let isOver = false;
    const begun = Promise.withResolvers<void>();
    const more = Promise.withResolvers<void>();
    service.engine.on("second", async (_turn, { say }) => {
      for (let piece = 1; piece <= 5; piece++) await say({ type: "text", delta: `${piece} ` });
      begun.resolve();
      await more.promise;
      for (let piece = 6; piece <= 10; piece++) await say({ type: "text", delta: `${piece} ` });
      isOver = true;
    });
    const client = await service.connect();
    const first = await client.start("first");
    const { conversationId } = await client.event("query:started", first.clientRequestId);
    const second = await client.start("second", {}, { conversationId });
    client.leave();
    await pause(100);
    await clock.advance(3 * 60_000);
    gate.resolve();
    await begun.promise;
    const back = await service.connect("owner", {
      clientInstanceId: client.clientInstanceId,
      received: { [second.clientRequestId]: 0 },
    });
    more.resolve();
    const isTold = async () => {
      // A process of a cluster reads what another one has written when some time has passed.
      await clock.advance(1000);
      return back.of(second.clientRequestId).some(({ event }) => event === "query:complete");
    };
    await expect.poll(isTold).toBe(true);
    expect(isOver).toBe(true);
    await pause(200);
    expect(back.of(second.clientRequestId).map(({ event, data }) => data.message?.seq ?? event)).toEqual([
      "query:started",
      ...Array.from({ length: 10 }, (_, at) => at + 1),
      "query:complete",
    ]);
  });

  it("with the client package: no message is lost, no storm of connections (real clock, a restart)", async () => {
    const service = await open();
    service.engine.on("first", () => new Promise(() => {}));
    const client = await service.connect();
    const first = await client.start("first");
    const { conversationId } = await client.event("query:started", first.clientRequestId);
    const ids = { clientRequestId: "req-second-0123456789", userMessageId: "msg-second" };
    const line = await openBrokenLine(service.url);
    undo.push(() => void line[Symbol.asyncDispose]());
    let connections = 0;
    const app = connectAgent({ baseURL: line.url, token: TOKENS.owner, transports: ["websocket"] });
    undo.push(() => app.close());
    const query = app.submit({ agentId: "helper", prompt: "second", conversationId, ...ids });
    await query.accepted;
    line.target = undefined;
    line.cut();
    // The next process: what waited begins at once, before its client is back.
    const engine = createScriptedEngine();
    let said = 0;
    engine.on("second", async (_turn, { say }) => {
      for (let piece = 1; piece <= 1500; piece++) {
        await say({ type: "text", delta: `${piece} ` });
        said = piece;
        await pause(1);
      }
    });
    const next = await open({ engine });
    await expect.poll(() => said).toBeGreaterThan(50);
    line.fate = (first) => (first.includes("/socket.io/") && connections++, "through");
    line.target = next.url;
    const seqs: number[] = [];
    const reading = (async () => {
      for await (const { seq } of query) seqs.push(seq);
    })();
    const end = await within(query.ended);
    if (end === "never") app.close();
    await reading;
    expect.soft(end).toMatchObject({ status: "completed" });
    expect.soft(connections).toBeLessThanOrEqual(2);
    expect.soft(seqs.length).toBe(1500);
  });
});

describe("a replay of much", () => {
  it("reaches a client that reads as fast as it can", async () => {
    const service = await open();
    saysMuch(service, 90);
    const client = await service.connect();
    const { clientRequestId } = await client.start("much");
    client.leave();
    await expect.poll(() => look(service, clientRequestId)).toBe("committed");
    await pause(1500);
    let received = 0;
    let connections = 0;
    let ended = false;
    for (; connections < 20 && !ended; connections++) {
      const back = await service.connect("owner", {
        clientInstanceId: client.clientInstanceId,
        received: { [clientRequestId]: received },
      });
      await within(
        Promise.race([
          back.ended(clientRequestId).then(() => (ended = true)),
          new Promise((resolve) => back.socket.once("disconnect", resolve)),
        ]),
      );
      received = Math.max(received, ...back.of(clientRequestId).map(({ data }) => data.message?.seq ?? 0));
      back.leave();
    }
    expect({ connections, ended }).toEqual({ connections: 1, ended: true });
  });

  it("live: a client that reads as fast as it can is not cut by an agent that says several large things", async () => {
    const service = await open();
    saysMuch(service, 40);
    const client = await service.connect();
    const { clientRequestId } = await client.start("much");
    expect(await within(client.ended(clientRequestId))).not.toBe("never");
  });
});

describe("the client package", () => {
  it("a query that another client instance had submitted comes to an end, if only unknown", async () => {
    const service = await open();
    const ids = { clientRequestId: "req-0123456789", userMessageId: "msg-0123456789" };
    const a = connectAgent({ baseURL: service.url, token: TOKENS.owner });
    undo.push(() => a.close());
    expect((await a.submit({ agentId: "helper", prompt: "x", ...ids }).ended).status).toBe("completed");
    const b = connectAgent({ baseURL: service.url, token: TOKENS.owner, silenceMs: 500 });
    undo.push(() => b.close());
    const query = b.submit({ agentId: "helper", prompt: "x", ...ids });
    await query.accepted;
    expect(await within(query.ended)).not.toBe("never");
  });

  it("a query whose turn was over and forgotten while the client was away comes to an end", async () => {
    const clock = createManualClock();
    const service = await open({ clock });
    const line = await openBrokenLine(service.url);
    undo.push(() => void line[Symbol.asyncDispose]());
    const gate = Promise.withResolvers<void>();
    service.engine.on("first", () => gate.promise);
    const other = await service.connect();
    const first = await other.start("first");
    const { conversationId } = await other.event("query:started", first.clientRequestId);
    const a = connectAgent({ baseURL: line.url, token: TOKENS.owner, silenceMs: 500, transports: ["websocket"] });
    undo.push(() => a.close());
    const query = a.submit({ agentId: "helper", prompt: "waits", conversationId });
    await query.accepted;
    // The laptop sleeps for longer than what turns said is kept.
    line.target = undefined;
    line.cut();
    await pause(100);
    gate.resolve();
    await expect.poll(() => look(service, query.clientRequestId)).toBe("committed");
    await pause(200);
    for (let minute = 0; minute < 15; minute++) {
      await clock.advance(60_000);
      await pause(20);
    }
    line.target = service.url;
    await a.connected();
    expect(await within(query.ended)).not.toBe("never");
  });

  it("R6c a follow-up submitted again with the same IDs is not refused", async () => {
    const service = await open();
    const a = connectAgent({ baseURL: service.url, token: TOKENS.owner, clientInstanceId: "client-0123456789-a" });
    const started = await a.submit({ agentId: "helper", prompt: "x" }).started;
    const ids = { clientRequestId: "req-0123456789", userMessageId: "msg-0123456789" };
    const followUp = { sessionId: started!.sessionId, agentId: "helper", prompt: "y", timestamp: 1, ...ids };
    expect((await a.submit(followUp).ended).status).toBe("completed");
    a.close();
    await pause(5);
    const b = connectAgent({ baseURL: service.url, token: TOKENS.owner, clientInstanceId: "client-0123456789-b" });
    undo.push(() => b.close());
    const query = b.submit(followUp);
    await expect(query.accepted.then(() => "accepted")).resolves.toBe("accepted");
  });
});

describe("a registry that was lost, and whose first start was killed", () => {
  it("answers unknown", async () => {
    await (await open()).close();
    for (const name of ["records.sqlite", "records.sqlite-wal", "records.sqlite-shm"])
      rmSync(join(folder.path, name), { force: true });
    // The kill falls between `put("registry", pending)` and the write of the time.
    const broken = await open({}).catch(() => undefined);
    const registries = broken!.app.port(ports.records).collection<any>({ name: "client-registry" });
    await registries.put("registry", { coveredSince: "pending" });
    await broken!.close();
    expect(await look(await open(), "never")).toBe("unknown");
  });
});

describe("a submission again, of an agent that is gone by now", () => {
  it("is the duplicate that it is", async () => {
    const agents = new Map<string, object>([["helper", { name: "Helper", engine: "scripted" }]]);
    const service = await open({ agents });
    const client = await service.connect();
    const { sent, clientRequestId } = await client.start("x");
    await client.ended(clientRequestId);
    await service.close();
    const second = await open({ agents: new Map([["other", { name: "Other", engine: "scripted" }]]) });
    const back = await second.connect();
    const again = await second.call("owner", "POST", "/api/query/start", { ...sent, originSocketId: back.id });
    expect(again).toMatchObject({ status: 202, body: { duplicate: true } });
  });
});

describe("a client that comes back before its old connection is seen to be dead", () => {
  it("gets what it missed", async () => {
    const service = await open();
    const gate = Promise.withResolvers<void>();
    service.engine.on("talks", async (_turn, { say }) => {
      await say({ type: "text", delta: "one" });
      await gate.promise;
      await say({ type: "text", delta: "two" });
    });
    // Stands for a TCP connection that is dead and not closed yet: what is sent to it arrives nowhere.
    const dead = await service.connect();
    const { clientRequestId } = await dead.start("talks");
    await dead.event("query:message", clientRequestId);
    const back = await service.connect("owner", { clientInstanceId: dead.clientInstanceId });
    gate.resolve();
    await back.ended(clientRequestId);
    expect(back.of(clientRequestId).map(({ data, event }) => data.message?.seq ?? event)).toEqual([
      "query:started",
      1,
      2,
      "query:complete",
    ]);
  });
});

describe("an ID that is also a name of every object", () => {
  it("is heard like any other after coming back", async () => {
    const service = await open();
    const client = await service.connect();
    const gate = Promise.withResolvers<void>();
    service.engine.on("x", async (_turn, { say }) => {
      await say({ type: "text", delta: "one" });
      await gate.promise;
      await say({ type: "text", delta: "two" });
    });
    await client.start("x", { clientRequestId: "toString" });
    await client.event("query:message", "toString");
    client.leave();
    await pause(100);
    gate.resolve();
    await pause(200);
    const back = await service.connect("owner", { clientInstanceId: client.clientInstanceId });
    await back.ended("toString");
    expect(
      back
        .of("toString")
        .filter(({ event }) => event === "query:message")
        .map(({ data }) => data.message.seq),
    ).toContain(2);
  });
});

describe("the client package and a replay of much", () => {
  it("comes to the end, without a storm of connections", async () => {
    const service = await open();
    saysMuch(service, 60);
    const line = await openBrokenLine(service.url);
    undo.push(() => void line[Symbol.asyncDispose]());
    let connections = 0;
    line.fate = (first) => (first.includes("/socket.io/") && connections++, "through");
    const app = connectAgent({ baseURL: line.url, token: TOKENS.owner, transports: ["websocket"], silenceMs: 3000 });
    undo.push(() => app.close());
    const query = app.submit({ agentId: "helper", prompt: "much" });
    const end = await within(query.ended);
    expect(connections).toBeLessThanOrEqual(2);
    expect(end).toMatchObject({ status: "completed" });
  });
});

describe("an engine that goes on talking after it was stopped", () => {
  it("nothing is told after query:complete", async () => {
    const service = await open();
    const silent = Promise.withResolvers<void>();
    service.engine.on("talks", async (_turn, context) => {
      void (async () => {
        for (let piece = 0; piece < 20; piece++) {
          void context.say({ type: "text", delta: "x" });
          await pause(20);
        }
        silent.resolve();
      })();
      await untilStopped(context);
    });
    const client = await service.connect();
    const { clientRequestId } = await client.start("talks");
    const { sessionId } = await client.event("query:started", clientRequestId);
    await pause(50);
    client.socket.emit("query:abort", { sessionId, clientRequestId });
    await client.ended(clientRequestId);
    await silent.promise;
    // What was sent before has arrived when this turn has ended.
    await client.ended((await client.start("next")).clientRequestId);
    expect(client.of(clientRequestId).at(-1)!.event).toBe("query:complete");
  });
});

describe("schemas of tools that are listed again", () => {
  it("are forgotten with their definitions", async () => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const refs: WeakRef<object>[] = [];
    const control: WeakRef<object>[] = [];
    const checks = new SchemaChecks(createSystemClock());
    const argumentsFault = createArgumentsFault(checks);
    await (async () => {
      for (let n = 0; n < 20; n++) control.push(new WeakRef({ properties: { n } }));
      for (let n = 0; n < 20; n++) {
        const schema = { type: "object", properties: { [`q${n}`]: { type: "string" } } };
        refs.push(new WeakRef(schema.properties));
        await argumentsFault(schema, {});
      }
    })();
    await checks.close();
    const living = (some: readonly WeakRef<object>[]) => () => (gc(), some.filter((ref) => ref.deref()).length);
    await expect.poll(living(control)).toBeLessThan(5);
    await expect.poll(living(refs)).toBeLessThan(5);
  });
});
