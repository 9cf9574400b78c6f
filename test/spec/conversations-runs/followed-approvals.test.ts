import { functionTools } from "@portico/adapters/tools/functions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentService, type Holder, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { type EventSubscription, subscribe } from "../../harness/event-subscription.ts";
import { toolOf } from "../../harness/looped-agents.ts";

const erase = {
  ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }),
  inputSchema: { type: "object", properties: { path: { type: "string" } } },
  run: async () => "done",
};

describe("the followers of waiting calls", () => {
  let service: AgentService;
  beforeAll(async () => {
    service = await startAgentService({
      agents: new Map([["looper", { name: "Looper", tools: ["erase"] }]]),
      adapters: [functionTools({ tools: [erase] })],
    });
  });
  afterAll(() => service?.close());

  const follow = (holder: Holder, lastEventId?: string): Promise<EventSubscription> =>
    subscribe(`${service.url}/api/approvals/events`, { "x-agent-service-token": TOKENS[holder] }, lastEventId);
  const until = async (events: EventSubscription, count: number) => {
    for (let event = await events.next(); event?.data.waiting !== count; event = await events.next());
  };
  const asked = async (holder: Holder) => {
    const client = await service.connect(holder);
    const { clientRequestId } = await client.start("erase", {}, { agentId: "looper" });
    const { runId, sessionId } = await client.event("query:started", clientRequestId);
    const all = async () => (await service.call("owner", "GET", "/api/approvals")).body.approvals;
    const find = async () => (await all()).find((each: any) => each.runId === runId);
    await expect.poll(find).toBeDefined();
    return { client, runId, sessionId, callId: (await find()).callId };
  };
  const reject = ({ runId, callId }: { readonly runId: string; readonly callId: string }) =>
    service.call("owner", "POST", `/api/runs/${runId}/approvals/${callId}`, { decision: "reject" });

  it("are told the number now, and after each call that begins to wait or is decided", async () => {
    const events = await follow("member");
    expect(await events.next()).toEqual({ event: "approvals:changed", data: { waiting: 0, hasMore: false } });
    const [one, two] = [await asked("member"), await asked("member")];
    await until(events, 2);
    await reject(one);
    await until(events, 1);
    await reject(two);
    await until(events, 0);
    events.leave();
  });

  it("are told when a turn is stopped while its call waits", async () => {
    const events = await follow("member");
    await until(events, 0);
    const { client, sessionId } = await asked("member");
    await until(events, 1);
    client.socket.emit("query:abort", { sessionId });
    await until(events, 0);
    events.leave();
  });

  it("are told of their own calls, owners of all", async () => {
    const [owner, other] = [await follow("owner"), await follow("other")];
    expect((await other.next())!.data.waiting).toBe(0);
    const call = await asked("member");
    await until(owner, 1);
    const later = await follow("other");
    expect((await later.next())!.data.waiting).toBe(0);
    later.leave();
    const own = await asked("other");
    await until(owner, 2);
    // The first event after the empty list is that of its own call.
    expect((await other.next())!.data.waiting).toBe(1);
    await reject(call);
    await reject(own);
    await until(owner, 0);
    for (const events of [owner, other]) events.leave();
  });

  it("that have the present list are told of the next change", async () => {
    const first = await follow("member");
    await until(first, 0);
    first.leave();
    const again = await follow("member", first.ids.at(-1));
    const call = await asked("member");
    expect((await again.next())!.data.waiting).toBe(1);
    await reject(call);
    await until(again, 0);
    again.leave();
  });

  it("are 64 in a process at most, and 32 of one user", async () => {
    const all: EventSubscription[] = [];
    const fill = async (holder: Holder) => {
      for (let count = 0; count < 32 * service.apps.length; count++) {
        const reader = await follow(holder);
        await reader.next();
        all.push(reader);
      }
    };
    await fill("member");
    await expect(follow("member")).rejects.toThrow("too_many_readers");
    await fill("other");
    await expect(follow("owner")).rejects.toThrow("too_many_readers");
    for (const reader of all) reader.leave();
    await expect
      .poll(() =>
        follow("owner").then(
          (reader) => (reader.leave(), true),
          () => false,
        ),
      )
      .toBe(true);
  });
});
