import type { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { promptOf } from "../../harness/scripted-agent.ts";

let service: AgentService;
let client: AgentClient;
const turns: ports.AgentTurn[] = [];
beforeEach(async () => {
  turns.length = 0;
  service = await startAgentService();
  client = await service.connect();
  service.engine.otherwise(async (turn, { say }) => {
    turns.push(turn);
    const [word, count] = promptOf(turn).split(" ");
    await say({ type: "text", delta: `to ${promptOf(turn)}` });
    if (word !== "summarize") return;
    const summary = { text: `What came before ${turns.length}`, messages: Number(count) };
    await say({ type: "summary", text: summary.text });
    return { summary };
  });
});
afterEach(() => service.close());

let conversationId: string | undefined;
async function tell(prompt: string) {
  const { clientRequestId } = await client.start(prompt, {}, conversationId === undefined ? {} : { conversationId });
  const { data } = await client.ended(clientRequestId);
  conversationId = data.conversationId;
  return clientRequestId;
}
const texts = ({ history }: ports.AgentTurn) =>
  history.map(({ role, parts }) => `${role}: ${parts.map((part) => ("text" in part ? part.text : part.type)).join()}`);
const messages = async (query = ""): Promise<{ sequence: number; role: string; parts: any[] }[]> =>
  (await service.call("owner", "GET", `/api/conversations/${conversationId}/messages${query}`)).body.messages;

describe("a summary of the oldest messages of a conversation", () => {
  beforeEach(() => (conversationId = undefined));

  it("takes their place in the turns that follow", async () => {
    for (const prompt of ["one", "two", "three"]) await tell(prompt);
    await tell("summarize 4");
    await tell("four");
    expect(texts(turns[3]!)).toEqual([
      "user: one",
      "assistant: to one",
      "user: two",
      "assistant: to two",
      "user: three",
      "assistant: to three",
    ]);
    expect(texts(turns[4]!)).toEqual([
      "user: What came before 4",
      "user: three",
      "assistant: to three",
      "user: summarize 4",
      "assistant: to summarize 4",
    ]);
    expect(turns[4]!.history[0]!.parts).toEqual([{ type: "summary", text: "What came before 4" }]);
  });

  it("may stand for an earlier summary, too", async () => {
    for (const prompt of ["one", "two"]) await tell(prompt);
    await tell("summarize 2");
    await tell("summarize 3");
    await tell("four");
    expect(texts(turns[4]!)).toEqual([
      "user: What came before 4",
      "user: summarize 2",
      "assistant: to summarize 2",
      "user: summarize 3",
      "assistant: to summarize 3",
    ]);
  });

  it("is a message of the conversation, and all messages that it stands for can still be read", async () => {
    for (const prompt of ["one", "two"]) await tell(prompt);
    await tell("summarize 3");
    const all = await messages();
    expect(all.map(({ role, parts }) => [role, parts[0].type, parts[0].text])).toEqual([
      ["user", "text", "one"],
      ["assistant", "text", "to one"],
      ["user", "text", "two"],
      ["assistant", "text", "to two"],
      ["user", "text", "summarize 3"],
      ["assistant", "summary", "What came before 3"],
      ["assistant", "text", "to summarize 3"],
    ]);
    expect(all[5]!.parts).toEqual([{ type: "summary", text: "What came before 3", upTo: all[2]!.sequence }]);
  });

  it("is told to the client as a message of the turn", async () => {
    for (const prompt of ["one", "two"]) await tell(prompt);
    const request = await tell("summarize 2");
    const told = client
      .of(request)
      .filter(({ event }) => event === "query:message")
      .map(({ data }) => data.message);
    expect(told.at(-1)).toMatchObject({ role: "assistant", type: "summary", content: { text: "What came before 3" } });
  });

  it("counts for nothing if it stands for messages that the engine did not get", async () => {
    await tell("one");
    await tell("summarize 9");
    await tell("two");
    expect(texts(turns[2]!)).toEqual(["user: one", "assistant: to one", "user: summarize 9", "assistant: to summarize 9"]);
  });

  it("is written by the model of an agent whose conversation exceeds its context.tokens", async () => {
    await service.close();
    const agent = { name: "Helper", engine: "loop", provider: "demo", context: { tokens: 1000 } };
    service = await startAgentService({ agents: new Map([["helper", agent]]) });
    client = await service.connect();
    for (let number = 1; number <= 4; number++) await tell(`number ${number} ${"x".repeat(1200)}`);
    const kinds = (await messages()).map(({ parts }) => parts[0].type);
    expect(kinds.filter((kind) => kind === "summary").length).toBeGreaterThan(0);
    expect(kinds.filter((kind) => kind === "text").length).toBe(8);
  });
});
