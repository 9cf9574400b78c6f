import { systemClock } from "@portico/adapters/clock/system";
import { openModel } from "@portico/adapters/models/call/open-model";
import { chatHttp } from "@portico/adapters/models/chat-http";
import type { ModelEvent } from "@portico/core/model-protocols";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { chatEvents } from "../../harness/stream-scripts.ts";
import { events } from "../../harness/upstream-answers.ts";

describe("a call of a model", () => {
  async function asked(upstream: FakeUpstream, model: string, more: object): Promise<readonly ModelEvent[]> {
    const options = { id: "main", type: "vendor", baseUrl: upstream.baseUrl, models: [model] };
    const { port, close } = await openAdapter(chatHttp(options), [systemClock()]);
    try {
      const called = openModel(port, model, { source: "agent", telemetry: { modelCall() {} } });
      const messages = [{ role: "user" as const, content: [{ type: "text", text: "hello" }] }];
      const read: ModelEvent[] = [];
      for await (const batch of called.ask({ messages, ...more }, { stream: true }, new AbortController().signal))
        read.push(...batch);
      return read;
    } finally {
      await close();
    }
  }

  it("ends at a stop sequence that the model does not take, with the counts of the whole answer (huggingface/smolagents#1893)", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(events(chatEvents("one two three", true)));
    const read = await asked(upstream, "gpt-5.2", { stop_sequences: [" t"] });
    expect(read.flatMap((event) => (event.type === "text" ? event.text : [])).join("")).toBe("one");
    expect(read.slice(-2)).toEqual([
      { type: "usage", usage: expect.objectContaining({ output: 11 }) },
      { type: "finish", reason: "stop-sequence", stopSequence: " t" },
    ]);
    expect(JSON.parse(await (await upstream.request()).text())).not.toHaveProperty("stop");
  });
});
