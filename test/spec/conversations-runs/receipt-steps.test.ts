import { functionTools } from "@portico/adapters/tools/functions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { type LoopedAgents, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events } from "../../harness/upstream-answers.ts";

const CREDENTIAL = "sk-verysecret0123456789";
const tools = functionTools({
  tools: [
    { ...toolOf("look"), run: async () => `{"room":"7","password":"hunter2"} with ${CREDENTIAL}` },
    {
      ...toolOf("export"),
      run: async () => `{"password":"hunter2","pin_token":${"7".repeat(6)},"rest":"${"y".repeat(40_000)}"}`,
    },
    { ...toolOf("read"), run: async () => "x".repeat(20_000) },
  ],
});

let looped: LoopedAgents;
beforeAll(async () => {
  const model = { provider: "messages", model: "echo-large" };
  looped = await startLoopedAgents({ helper: { ...model, tools: ["look", "read", "export"] } }, { adapters: [tools] });
});
afterAll(() => looped[Symbol.asyncDispose]());

const calling = (id: string, name: string, text = "") =>
  looped.upstream.answerNext(events(answerEvents("messages", { text, calls: [{ id, name, input: {} }] })));
const answering = (text: string) => looped.upstream.answerNext(events(answerEvents("messages", { text })));
const stepsOf = (runId: string, receiptId: string, holder: "owner" | "member" | "service" = "owner") =>
  looped.service.call(holder, "GET", `/api/runs/${runId}/receipt/${receiptId}/steps`);

describe("GET /api/runs/:id/receipt/:receiptId/steps", () => {
  it("shows what the model answered and its tools returned, in order, with credentials masked", async () => {
    calling("call_1", "look", "I look.");
    answering("It is room 7.");
    const { data, receipt } = await looped.ask("helper", "Which room?");
    const { status, body } = await stepsOf(data.runId, receipt.receipt_id);
    expect([status, body.receipt_id]).toEqual([200, receipt.receipt_id]);
    expect(body.steps).toEqual([
      { kind: "answer", text: "I look.", calls: ["call_1"] },
      { kind: "result", call_id: "call_1", text: expect.any(String) },
      { kind: "answer", text: "It is room 7." },
    ]);
    expect(body.steps[1].text).toContain("7");
    expect(body.steps[1].text).not.toContain(CREDENTIAL);
    expect(receipt).not.toHaveProperty("steps");
  });

  it("keeps at most 16,384 characters of each", async () => {
    calling("call_2", "read");
    answering("Long.");
    const { data, receipt } = await looped.ask("helper", "Read it");
    const { body } = await stepsOf(data.runId, receipt.receipt_id);
    expect(body.steps[1].text.slice(0, 16_384)).toBe("x".repeat(16_384));
    expect(body.steps[1].text.length).toBeLessThan(16_500);
  });

  it("masks members of JSON that is too long to be kept, and says how long it was", async () => {
    calling("call_3", "export");
    answering("Exported.");
    const { data, receipt } = await looped.ask("helper", "Export it");
    const { text } = (await stepsOf(data.runId, receipt.receipt_id)).body.steps[1];
    expect(text.slice(0, 60)).toBe(`{"password":"***","pin_token":"***","rest":"${"y".repeat(60)}`.slice(0, 60));
    expect(text).toMatch(/cut: 40051 characters in all\]$/);
  });

  it("keeps at most 262,144 characters of a turn", async () => {
    for (let at = 0; at < 18; at++) calling(`call_l${at}`, "read");
    answering("Enough.");
    const { data, receipt } = await looped.ask("helper", "Read all of it", { maxTurns: 30 });
    const { steps } = (await stepsOf(data.runId, receipt.receipt_id)).body;
    const characters = steps.reduce((sum: number, { text = "" }) => sum + text.length, 0);
    expect(steps).toHaveLength(37);
    expect(characters).toBeLessThan(262_144 + 100);
    expect(steps.at(-1)).toEqual({ kind: "answer" });
  });

  it("are those of the run's user alone; unknown receipts are 404", async () => {
    answering("Hello.");
    const { data, receipt } = await looped.ask("helper", "Hello?");
    expect((await stepsOf(data.runId, receipt.receipt_id, "member")).body.code).toBe("run_not_found");
    expect((await stepsOf(data.runId, receipt.receipt_id, "service")).body.code).toBe("user_unresolved");
    expect(await stepsOf(data.runId, "rcp_other")).toMatchObject({ status: 404, body: { code: "receipt_not_found" } });
    expect((await stepsOf("a%20b", "rcp_other")).body.code).toBe("invalid_run_id");
    const others = await looped.service.connect("member");
    answering("Hello, member.");
    const { clientRequestId } = await others.start("Hello?");
    const { runId } = (await others.ended(clientRequestId)).data;
    expect((await stepsOf(runId, "rcp_other")).body.code).toBe("run_not_found");
  });
});
