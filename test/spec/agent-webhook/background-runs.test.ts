import { createManualClock } from "@portico/adapters/clock/manual";
import { functionTools } from "@portico/adapters/tools/functions";
import { ports } from "@portico/core";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { holdTurnsOf } from "../../harness/held-turns.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { promptOf, type Script, untilStopped } from "../../harness/scripted-agent.ts";
import {
  scriptedAgent,
  startWebhookService,
  type WebhookService,
  type WebhookServiceOptions,
} from "../../harness/webhook-app.ts";

let service: WebhookService;
let secret: string;
afterEach(() => service?.close());

/** A service whose agents play the field `text` of the event `work`. */
async function start(
  options: WebhookServiceOptions = {},
  event: { toolIds?: readonly string[]; maxTurns?: number } = {},
): Promise<void> {
  service = await startWebhookService(options);
  secret = await service.save("work", "{{text}}", event);
}
const work = async (text: string, agentId?: string) => {
  expect((await service.trigger(secret, { event: "work", payload: { text } }, agentId)).status).toBe(200);
};
const runs = async (more = "") => (await service.call("owner", "GET", `/api/runs?limit=1000${more}`)).body.runs;
const receiptsOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts;
const ended = (count: number) =>
  vi.waitFor(async () => {
    const all = await runs();
    expect(all.filter(({ status }: { status: string }) => status !== "running")).toHaveLength(count);
    return all;
  }, 30_000);

describe("a run that a webhook event began (2.11, 4.4)", () => {
  it("is the owner's, background, with its origin, and completed when the agent is done; it has a receipt like any other", async () => {
    await start();
    await work("Good morning");
    const [run] = await ended(1);
    expect(run).toMatchObject({
      run_id: expect.stringMatching(/^run_/),
      session_id: expect.stringMatching(/^ses_/),
      user_id: "owner",
      agent_id: "helper",
      status: "completed",
      background: true,
      inbound: { origin: "webhook", displayName: "work" },
      title: "Good morning",
      started_at: expect.any(String),
      completed_at: expect.any(String),
    });
    expect(run.conversation_id).toBeUndefined();
    expect((await service.call("owner", "GET", `/api/runs/${run.run_id}/runtime-state`)).body.status).toBe("completed");
    expect(await receiptsOf(run.run_id)).toEqual([
      expect.objectContaining({
        run_id: run.run_id,
        input: "Good morning",
        output: "You said: Good morning",
        outcome: { status: "success", auto_completed: true },
      }),
    ]);
  });

  it("has the event's maxTurns, and of the agent's tools only the event's", async () => {
    const run = async () => "done";
    const tool = (name: string) =>
      ({ name, description: name, inputSchema: { type: "object" }, run, riskLevel: "low", requiresConfirmation: false }) as const;
    const agent = { ...scriptedAgent, tools: ["one", "DelegateToAgent"] };
    await start(
      { files: { helper: agent }, adapters: [functionTools({ tools: [tool("one"), tool("two")] })] },
      { toolIds: ["two"], maxTurns: 3 },
    );
    const seen: unknown[] = [];
    service.engine.otherwise(async ({ tools, maxTurns, history }, { callTool, signal }) => {
      const answers = [];
      for (const toolId of ["one", "two", "SendUserMessage"])
        answers.push((await callTool({ toolId, arguments: {} }, signal)).isError);
      seen.push({ tools: tools.map(({ id }) => id), maxTurns, history, answers });
    });
    await work("x");
    await ended(1);
    expect(seen).toEqual([{ tools: ["two"], maxTurns: 3, history: [], answers: [true, false, true] }]);
  });

  it("an empty tool list allows no tools", async () => {
    await start();
    let offered: unknown;
    service.engine.otherwise(async ({ tools }) => void (offered = tools));
    await work("x");
    await ended(1);
    expect(offered).toEqual([]);
  });

  it("a tool that requires confirmation is not run: the model gets an error that says so (open points 3)", async () => {
    const run = vi.fn(async () => "erased");
    const erase = {
      name: "erase",
      description: "Erases",
      inputSchema: { type: "object" },
      run,
      riskLevel: "critical",
      requiresConfirmation: true,
    } as const;
    await start({ adapters: [functionTools({ tools: [erase] })] }, { toolIds: ["erase"] });
    const told = vi.fn();
    service.engine.otherwise(async (_turn, { callTool, signal }) =>
      told(await callTool({ toolId: "erase", arguments: {} }, signal)),
    );
    await work("x");
    await ended(1);
    expect(run).not.toHaveBeenCalled();
    expect(told).toHaveBeenCalledWith({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining("confirmation") }],
    });
  });

  it("fails with its reason, and a later failure does not change the trigger's answer", async () => {
    await start();
    service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "text", delta: "So far" });
      throw new Error("broken");
    });
    await work("x");
    const [run] = await ended(1);
    expect(run).toMatchObject({ status: "failed", failure_reason: "error" });
    expect(await receiptsOf(run.run_id)).toEqual([
      expect.objectContaining({
        output: "So far",
        outcome: { status: "failed", auto_completed: false },
        failure: { code: "internal_error", message: "The turn failed" },
      }),
    ]);
  });

  it("works with the configuration of the moment at which it was accepted", async () => {
    await start({ background: { concurrencyPerAgent: 1 } });
    const gate = createGate();
    service.engine.on("first", () => gate.opened.then(() => {}));
    await work("first");
    await work("second");
    await service.save("work", "Changed: {{text}}");
    await service.manage("PATCH", "helper/webhooks", { enabled: false });
    await service.manage("POST", "helper/webhooks/secret/rotate");
    gate.open();
    await ended(2);
    expect(service.engine.played).toEqual(["first", "second"]);
  });

  it("takes too long: failed, timeout, with its own interruption reason, and what it had said in the receipt", async () => {
    const clock = createManualClock();
    await start({ clock, background: { timeoutMs: 60_000 } });
    service.engine.otherwise(async (_turn, context) => {
      await context.say({ type: "text", delta: "So far" });
      await untilStopped(context);
    });
    await work("x");
    await expect.poll(() => service.engine.played).toHaveLength(1);
    clock.advance(59_000);
    expect((await runs())[0].status).toBe("running");
    clock.advance(1000);
    const [run] = await ended(1);
    expect(run).toMatchObject({ status: "failed", failure_reason: "timeout", interruption_reason: "background_timeout" });
    expect(await receiptsOf(run.run_id)).toEqual([
      expect.objectContaining({
        output: "So far",
        outcome: { status: "partial", auto_completed: false },
        interruption_reason: "background_timeout",
      }),
    ]);
  });

  it("whose engine ignores its signal ends, too, and the agent's other events continue", async () => {
    const clock = createManualClock();
    await start({ clock, background: { timeoutMs: 60_000, concurrencyPerAgent: 1 } });
    const late = Promise.withResolvers<void>();
    let lateCall: Promise<unknown> = Promise.resolve();
    service.engine.on("deaf", async (_turn, { callTool }) => {
      await late.promise;
      const call = { toolId: "SendUserMessage", arguments: { message: "Too late" } };
      lateCall = callTool(call, new AbortController().signal).catch((error: unknown) => error);
      return new Promise(() => {});
    });
    await work("deaf");
    await work("next");
    await expect.poll(() => service.engine.played).toEqual(["deaf"]);
    await clock.advance(60_000);
    await clock.advance(5000);
    await expect.poll(() => service.engine.played).toEqual(["deaf", "next"]);
    const all = await ended(2);
    expect(all.map(({ status }: { status: string }) => status).sort()).toEqual(["completed", "failed"]);
    late.resolve();
    await expect.poll(() => lateCall).toBeInstanceOf(Error);
    expect((await service.manage("GET", "helper/schedule-messages")).body.total).toBe(0);
  });

  it("can be stopped by its user over the realtime channel, by its session", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    await work("x");
    await expect.poll(() => service.engine.played).toHaveLength(1);
    const [{ session_id: sessionId }] = await runs();
    const client = await service.connect("owner");
    await expect.poll(() => client.socket.connected).toBe(true);
    client.socket.emit("query:abort", { sessionId });
    const [run] = await ended(1);
    expect(run).toMatchObject({ status: "idle", interruption_reason: "user_stop" });
  });

  it("accepts no follow-up, because no user talks to it", async () => {
    await start();
    await work("x");
    const [{ session_id: sessionId }] = await ended(1);
    const client = await service.connect("owner");
    await expect.poll(() => client.socket.connected).toBe(true);
    expect((await client.followUp(sessionId, "And then?")).status).toBe(404);
  });

  it("is in no conversation list, and its transcript is not stored", async () => {
    await start();
    service.engine.otherwise(async (_turn, { say }) => {
      for (let piece = 0; piece < 3; piece++) {
        await say({ type: "text", delta: "x".repeat(600_000) });
      }
    });
    await work("x");
    const [run] = await ended(1);
    expect((await service.call("owner", "GET", "/api/conversations")).body.conversations).toEqual([]);
    const log = service.app.port(ports.log);
    await expect.poll(() => log.count(`turns/${run.run_id.replace("run_", "turn_")}`)).toBe(0);
  });

  it("its transcript goes also where the log is away when it ends, at once or at the next start", async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    await start({ dataDir: folder.path });
    const away = () => Promise.reject(new ports.LogUnavailable("The log is away"));
    const remove = vi.spyOn(service.app.port(ports.log), "remove").mockImplementationOnce(away);
    const talk: Script = async (_turn, { say }) => {
      for (let piece = 0; piece < 3; piece++) await say({ type: "text", delta: "x".repeat(600_000) });
    };
    service.engine.otherwise(talk);
    await work("x");
    const [first] = await ended(1);
    const kept = (run: any) => service.app.port(ports.log).count(`turns/${run.run_id.replace("run_", "turn_")}`);
    await expect.poll(() => kept(first)).toBe(0);
    remove.mockImplementation(away);
    await work("y");
    const second = (await ended(2)).find(({ title }: { title: string }) => title === "y");
    await expect.poll(() => remove.mock.calls.length).toBeGreaterThan(2);
    expect(await kept(second)).toBeGreaterThan(0);
    await service.close();
    service = await startWebhookService({ dataDir: folder.path });
    await expect.poll(() => kept(second)).toBe(0);
    expect((await runs()).map(({ status }: { status: string }) => status)).toEqual(["completed", "completed"]);
    expect(await receiptsOf(second.run_id)).toHaveLength(1);
  });

  it("delegates: the other agent's run says where it comes from", async () => {
    await start(
      { files: { helper: scriptedAgent, second: { ...scriptedAgent, name: "Second" } } },
      { toolIds: ["DelegateToAgent"] },
    );
    service.engine.on("x", async (_turn, { callTool, signal, say }) => {
      const { content } = await callTool(
        { toolId: "DelegateToAgent", arguments: { agentId: "second", prompt: "do it" } },
        signal,
      );
      await say({ type: "text", delta: JSON.stringify(content) });
    });
    await work("x");
    await ended(2);
    const [own] = await runs("&agent_id=helper");
    const [other] = await runs("&agent_id=second");
    expect(other).toMatchObject({
      user_id: "owner",
      status: "completed",
      delegation: { fromAgentId: "helper", parentRunId: own.run_id, mode: "wait" },
    });
    expect((await receiptsOf(own.run_id))[0].output).toContain("You said: do it");
  });
});

describe("how many are executed at once", () => {
  it.each([1, 4, 7])(
    "concurrencyPerAgent %i: so many of one agent, in the order of their acceptance; others do not wait for them",
    async (concurrency) => {
      await start({
        files: {
          helper: scriptedAgent,
          second: {
            ...scriptedAgent,
            webhooks: { enabled: true, events: { work: { promptTemplate: "{{text}}", toolIds: [] } } },
          },
        },
        background: { concurrencyPerAgent: concurrency },
      });
      const other = (await service.manage("POST", "second/webhooks/secret/rotate")).body.secret;
      const gate = createGate();
      let [executing, most] = [0, 0];
      service.engine.otherwise(async (turn) => {
        if (promptOf(turn) === "other") return;
        most = Math.max(most, ++executing);
        await gate.opened;
        executing--;
      });
      for (let index = 0; index < 20; index++) await work(`${index}`);
      expect((await service.trigger(other, { event: "work", payload: { text: "other" } }, "second")).status).toBe(200);
      await expect.poll(() => service.engine.played).toContain("other");
      await expect.poll(() => executing).toBe(concurrency);
      gate.open();
      await ended(21);
      expect(most).toBe(concurrency);
      const own = service.engine.played.filter((prompt) => prompt !== "other");
      expect(own).toHaveLength(20);
      expect(own.slice(0, concurrency).sort()).toEqual(Array.from({ length: concurrency }, (_, index) => `${index}`).sort());
    },
  );

  it("default 4", async () => {
    await start();
    const gate = createGate();
    service.engine.otherwise(() => gate.opened.then(() => {}));
    for (let index = 0; index < 10; index++) await work(`${index}`);
    await expect.poll(() => service.engine.played.length).toBe(4);
    gate.open();
    await ended(10);
  });
});

describe("rotation under load (3.1)", () => {
  it("the old secret is refused by triggers that share their look at it with earlier ones", async () => {
    await start();
    using turn = holdTurnsOf("store-calls.ts");
    const early = service.trigger(secret, { event: "work" });
    // It has arrived when the store is asked for the agent's secret, which waits for the end of the turn.
    await expect.poll(() => turn.count).toBe(1);
    const { body } = await service.manage("POST", "helper/webhooks/secret/rotate");
    const late = [secret, body.secret].map((each) => service.trigger(each, { event: "work" }));
    // They arrive meanwhile.
    await service.manage("GET", "helper/webhooks");
    turn.release();
    expect((await Promise.all([early, ...late])).map(({ status }) => status)).toEqual([401, 401, 200]);
  });

  it("the old secret is refused from the answer on, and every accepted event is executed once", async () => {
    await start();
    let accepted = 0;
    let isOver = false;
    const prompts = new Set<string>();
    const current = { secret };
    const senders = Array.from({ length: 8 }, async (_, sender) => {
      for (let index = 0; !isOver; index++) {
        const text = `${sender}-${index}`;
        const { status } = await service.trigger(current.secret, { event: "work", payload: { text } });
        if (status === 200) prompts.add(text);
        else expect(status).toBe(401);
        accepted = prompts.size;
      }
    });
    for (let rotation = 0; rotation < 10; rotation++) {
      const before = accepted;
      await expect.poll(() => accepted).toBeGreaterThan(before);
      const old = current.secret;
      current.secret = (await service.manage("POST", "helper/webhooks/secret/rotate")).body.secret;
      expect((await service.trigger(old, { event: "work" })).status).toBe(401);
    }
    isOver = true;
    await Promise.all(senders);
    await expect.poll(() => service.engine.played.length, { timeout: 30_000 }).toBe(prompts.size);
    expect(new Set(service.engine.played)).toEqual(prompts);
  });
});
