import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type RecordedTool, recordingOf } from "../../coding-tools/record-requests.ts";
import { PROTOCOLS } from "../../harness/callers.ts";
import { readCodingTools } from "../../harness/coding-tools.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { NOTE, readingModel } from "../../harness/reading-model.ts";
import { collectChatStream, collectMessagesStream } from "../../harness/stream-grammar.ts";

/** What each tool's requests lose toward a provider of the other protocol; `npm run try:tools` tries the tools themselves. */
const DROPPED: Readonly<Record<string, readonly string[]>> = {
  "Claude Code": [
    "tools.defer_loading",
    "cache_control",
    "system.x-anthropic-billing-header",
    "thinking.display",
    "metadata.user_id",
    "context_management",
  ],
  opencode: [],
  "Qwen Code": [],
  Continue: [],
  Cline: [],
  "Copilot CLI": [],
  pi: ["store"],
};

const tools = readCodingTools().map((tool) => ({
  ...tool,
  recorded: JSON.parse(readFileSync(recordingOf(tool.name), "utf8")) as RecordedTool,
}));

describe("coding tools (docs/guides/coding-tools.md), by the requests that they sent", () => {
  it("are recorded in the versions that the guide names", () => {
    expect(tools.map(({ recorded: { package: name, version, speaks } }) => ({ package: name, version, speaks }))).toEqual(
      tools.map(({ package: name, version, speaks }) => ({ package: name, version, speaks })),
    );
  });

  describe.each(PROTOCOLS)("with a provider of %s", (protocol) => {
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ providers: [{ protocol, upstream, models: ["demo"] }] });
    });
    beforeEach(() => {
      upstream.reset();
      upstream.answerAll(readingModel("/tmp/somewhere/work/NOTES.md"));
    });
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    it.each(tools)("$name reads a file and hears what the model says of it", async ({ name, recorded: { speaks, requests } }) => {
      const dropped = new Set<string>();
      let said: object = {};
      for (const { path, headers, body } of requests) {
        const reply = await proxy.post(path, body, headers);
        const text = await reply.text();
        expect([reply.status, reply.status === 200 || text]).toEqual([200, true]);
        said = speaks === "messages" ? collectMessagesStream(text) : collectChatStream(text);
        for (const field of reply.headers["x-portico-dropped"]?.split(", ") ?? []) dropped.add(field);
      }
      expect(JSON.stringify(said)).toContain(NOTE);
      expect([...dropped]).toEqual(protocol === speaks ? [] : DROPPED[name]);
    });
  });
});
