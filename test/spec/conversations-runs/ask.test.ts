import { functionTools } from "@portico/adapters/tools/functions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentService, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
beforeAll(async () => {
  service = await startAgentService();
});
afterAll(() => service.close());

const waiting = (seconds = 30) => ({ prefer: `wait=${seconds}` });
const ask = (body: object, headers: Record<string, string> = {}, agent = "helper") =>
  service.call("member", "POST", `/api/agents/${agent}/ask`, body, headers);

/** Plays a turn that says a word, and another one when the gate opens. */
function held(prompt: string) {
  const gate = createGate();
  service.engine.on(prompt, async (_turn, { say }) => {
    await say({ type: "text", delta: "first " });
    await gate.opened;
    await say({ type: "text", delta: "second" });
  });
  return gate;
}

/** The events of a stream until its end. */
async function follow(location: string, headers: Record<string, string> = {}) {
  const answer = await fetch(service.url + location, { headers: { "x-agent-service-token": TOKENS.member, ...headers } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/event-stream")]);
  const events = (await answer.text())
    .split("\n\n")
    .map((text) => new Map(text.split("\n").map((line) => line.split(/: ?(.*)/s, 2) as [string, string])));
  return events
    .filter((fields) => fields.has("event"))
    .map((fields) => ({ event: fields.get("event"), id: fields.get("id"), data: JSON.parse(fields.get("data")!) }));
}

describe("a question to an agent over HTTP (an extension)", () => {
  it("is answered at once with the ids of its turn and where its events are", async () => {
    const gate = held("at once");
    const { status, body } = await ask({ prompt: "at once" });
    expect([status, body]).toEqual([
      200,
      {
        status: "started",
        clientRequestId: expect.any(String),
        conversationId: expect.stringMatching(/^conv_/),
        sessionId: expect.stringMatching(/^ses_/),
        runId: expect.stringMatching(/^run_/),
        location: `/api/query/client-requests/${body.clientRequestId}/events`,
      },
    ]);
    gate.open();
    const receipts = async () => (await service.call("member", "GET", `/api/runs/${body.runId}/receipt`)).body.receipts;
    await expect.poll(receipts).toMatchObject([{ input: "at once", output: "first second" }]);
  });

  it("is answered with what the agent said, with `Prefer: wait`, once its turn has ended", async () => {
    held("and wait").open();
    const { status, body, headers } = await ask({ prompt: "and wait" }, waiting());
    expect(headers["preference-applied"]).toBe("wait=30");
    expect([status, body]).toMatchObject([200, { status: "completed", output: "first second" }]);
    expect(body).not.toHaveProperty("location");
  });

  it("tells the error of a turn that fails", async () => {
    service.engine.on("and fail", () => Promise.reject(new Error("out of order")));
    const { status, body } = await ask({ prompt: "and fail" }, waiting());
    expect([status, body]).toMatchObject([200, { status: "failed", error: { code: expect.any(String) } }]);
    expect(JSON.stringify(body)).not.toContain("out of order");
  });

  it("goes on in its conversation", async () => {
    held("first question").open();
    const { body } = await ask({ prompt: "first question" }, waiting());
    held("second question").open();
    const second = await ask({ prompt: "second question", conversationId: body.conversationId }, waiting());
    expect(second.body).toMatchObject({ status: "completed", conversationId: body.conversationId, runId: body.runId });
    const { messages } = (await service.call("member", "GET", `/api/conversations/${body.conversationId}/messages`)).body;
    expect(messages.filter(({ role }: { role: string }) => role === "user")).toHaveLength(2);
  });

  it("has one turn however often it is sent under its clientRequestId, and its caller leaves", async () => {
    const gate = held("only once");
    const question = { prompt: "only once", clientRequestId: "only-once" };
    const left = new AbortController();
    const first = fetch(`${service.url}/api/agents/helper/ask`, {
      method: "POST",
      headers: { "x-agent-service-token": TOKENS.member, "content-type": "application/json", ...waiting() },
      body: JSON.stringify(question),
      signal: left.signal,
    });
    await expect.poll(() => service.engine.played.filter((prompt) => prompt === "only once").length).toBe(1);
    left.abort();
    await expect(first).rejects.toThrow();
    const again = ask(question, waiting());
    gate.open();
    expect((await again).body).toMatchObject({ status: "completed", output: "first second", duplicate: true });
    expect(await ask({ ...question, prompt: "another" })).toMatchObject({ status: 409 });
    expect(service.engine.played.filter((prompt) => prompt === "only once")).toHaveLength(1);
  });

  it("says that its turn waits for a person, and tells the answer once the person has decided", async () => {
    const erase = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "erased" };
    await using own = await startAgentService({
      agents: new Map([["looper", { name: "Looper", tools: ["erase"] }]]),
      adapters: [functionTools({ tools: [erase] })],
    });
    const question = { prompt: "use erase", clientRequestId: "to-be-decided" };
    const send = (seconds: number) => own.call("member", "POST", "/api/agents/looper/ask", question, waiting(seconds));
    let { body } = await send(1);
    await expect.poll(async () => ({ body } = await send(1)).body.status).toBe("waiting");
    expect(body.location).toContain("/events");
    const { approvals } = (await own.call("member", "GET", "/api/approvals")).body;
    await own.call("member", "POST", `/api/runs/${body.runId}/approvals/${approvals[0].callId}`, { decision: "approve" });
    expect((await send(30)).body).toMatchObject({ status: "completed", duplicate: true, output: expect.any(String) });
  });

  it("is answered at once when the service stops", async () => {
    const gate = held("until the stop");
    await using own = await startAgentService({ engine: service.engine });
    const answered = own.call("member", "POST", "/api/agents/helper/ask", { prompt: "until the stop" }, waiting());
    await expect.poll(() => service.engine.played.filter((prompt) => prompt === "until the stop").length).toBe(1);
    for (const app of own.apps) app.surface("agent").endEventStreams();
    expect((await answered).body).toMatchObject({ status: "started" });
    gate.open();
  });

  it("is refused with the errors of a submission", async () => {
    expect(await ask({ prompt: "" })).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    expect(await ask({ prompt: "?" }, {}, "nobody")).toMatchObject({ status: 400, body: { code: "unknown_agent" } });
    expect(await ask({ prompt: "?", conversationId: "conv_none" })).toMatchObject({
      status: 404,
      body: { code: "conversation_not_found" },
    });
    expect(await service.call(undefined, "POST", "/api/agents/helper/ask", { prompt: "?" })).toMatchObject({ status: 401 });
    expect(await service.call("service", "POST", "/api/agents/helper/ask", { prompt: "?" })).toMatchObject({ status: 403 });
  });
});

describe("the events of a question's turn (an extension)", () => {
  it("are those of the realtime channel, from the first to the end, each with an id", async () => {
    const gate = held("tell all");
    const { body } = await ask({ prompt: "tell all" });
    const followed = follow(body.location);
    gate.open();
    const events = await followed;
    expect(events.map(({ event }) => event)).toEqual([
      "query:started",
      ...events.slice(1, -1).map(() => "query:message"),
      "query:complete",
    ]);
    expect(events.map(({ id }) => id)).toEqual([...events.slice(0, -1).map((_, index) => String(index + 1)), "end"]);
    const said = events.flatMap(({ data }) => data.message?.delta ?? []);
    expect(said.join("")).toBe("first second");
    expect(events.at(-1)!.data).toMatchObject({ runId: body.runId, terminal: { status: "completed" } });
  });

  it("go on after the last one that a reader has, also when the turn has ended", async () => {
    held("tell more").open();
    const { body } = await ask({ prompt: "tell more" }, waiting());
    const location = `/api/query/client-requests/${body.clientRequestId}/events`;
    const all = await follow(location);
    for (const [index, { id }] of all.entries()) {
      expect(await follow(location, { "last-event-id": id! })).toEqual(all.slice(index + 1));
    }
    expect(await follow(location, { "last-event-id": "nonsense" })).toEqual(all);
  });

  it("are those of a turn that its user stops", async () => {
    service.engine.on("stop me", (_turn, context) => untilStopped(context));
    const { body } = await ask({ prompt: "stop me" });
    const followed = follow(body.location);
    const client = await service.connect("member");
    await expect.poll(() => service.engine.played.filter((prompt) => prompt === "stop me").length).toBe(1);
    client.socket.emit("query:abort", { sessionId: body.sessionId, clientRequestId: body.clientRequestId });
    expect((await followed).at(-1)).toMatchObject({ event: "query:complete", data: { terminal: { status: "interrupted" } } });
    client.leave();
  });

  it("belong to the user who asked: others get 404, as for a question that nobody asked", async () => {
    held("mine").open();
    const { body } = await ask({ prompt: "mine" }, waiting());
    const path = (id: string) => `/api/query/client-requests/${id}/events`;
    for (const [holder, id] of [["other", body.clientRequestId] as const, ["member", "unknown"] as const])
      expect(await service.call(holder, "GET", path(id))).toMatchObject({ status: 404, body: { code: "request_not_found" } });
  });
});
