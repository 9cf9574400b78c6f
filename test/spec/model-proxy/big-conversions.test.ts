import { describe, expect, it } from "vitest";
import { CALLERS, CONVERTED } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";

/** Long enough for a thread of its own, and no two pieces of it alike, so that none can go missing or change places. */
const TEXT = Array.from({ length: 100_000 }, (_, line) => `${line} naïve ☃`).join("\n");

describe("big bodies to an upstream of the other protocol (open points 2)", () => {
  describe.each(["node", "fetch"] as const)("on a %s host", (host) => {
    it.each(CONVERTED)("$caller caller, $upstream upstream: every byte arrives, declared or chunked", async (each) => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol: each.upstream, upstream }] });
      const body = Buffer.from(JSON.stringify(CALLERS[each.caller].request(TEXT)));
      const headers = { "x-api-key": await proxy.token(), "content-type": "application/json" };
      const { path } = CALLERS[each.caller];
      const replies = [await proxy.call({ path, headers, body }), await proxy.call({ path, headers, body: piecesOf(body) })];
      for (const [index, reply] of replies.entries()) {
        expect(reply.status).toBe(200);
        await reply.bytes();
        const request = await upstream.request(index + 1);
        expect(textOf(await request.json())).toBe(TEXT);
      }
    });
  });

  it("a declared length that is wrong, on a host that does not check it, loses nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await startProxy({ host: "fetch", providers: [{ protocol: "messages", upstream }] });
    const body = Buffer.from(JSON.stringify(CALLERS["chat-completions"].request(TEXT)));
    const path = "/v1/chat/completions";
    for (const declared of [body.length - 110_000, body.length + 110_000]) {
      const headers = {
        "x-api-key": await proxy.token(),
        "content-type": "application/json",
        "content-length": String(declared),
      };
      const reply = await proxy.call({ path, headers, body: piecesOf(body) });
      expect(reply.status).toBe(200);
      await reply.bytes();
    }
    for (const number of [1, 2]) expect(textOf(await (await upstream.request(number)).json())).toBe(TEXT);
  });
});

async function* piecesOf(body: Buffer): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < body.length; from += 100_001) yield body.subarray(from, from + 100_001);
}

/** What the only message says, as a string or as its one part. */
function textOf(request: unknown): string | undefined {
  const { content } = (request as { messages: [{ content: string | [{ text: string }] }] }).messages[0];
  return typeof content === "string" ? content : content[0].text;
}
