import { PassThrough, Readable } from "node:stream";
import { type Adapter, defineAdapter, ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { startProxy } from "../../harness/proxy-app.ts";

const CLOSED = () => {
  const body = new PassThrough();
  setImmediate(() => body.destroy());
  return body;
};
/** Bodies of adapters that do not keep to the port, which wants Buffers. */
const BODIES: Readonly<Record<string, () => Readable>> = {
  texts: () => Readable.from(["data: {}\n\n", "data: [DONE]\n\n"]),
  objects: () => Readable.from([{ choices: [] }]),
  numbers: () => Readable.from([1, 2, 3]),
  "nothing, and is closed": CLOSED,
  "an error that is a text": () => failing("broken" as never),
  "an error": () => failing(new TypeError("of the adapter")),
};

describe.each(["node", "fetch"] as const)("a provider of an own adapter on a %s host", (host) => {
  describe.each(Object.entries(BODIES))("whose body gives %s", (_what, body) => {
    describe.each(["identity", "gzip"])("with the encoding %s", (encoding) => {
      it.each([
        ["messages", "messages", true],
        ["messages", "messages", false],
        ["messages", "chat-completions", true],
        ["messages", "chat-completions", false],
        ["chat-completions", "messages", true],
      ] as const)("ends only this call (%s to %s, stream %s)", async (protocol, upstream, isStream) => {
        const caller = CALLERS[protocol];
        await using proxy = await startProxy({
          host,
          providers: [{ protocol: "own", id: "own", adapter: own(upstream, body, { encoding, isStream }) }, { protocol: "demo" }],
        });
        const ask = proxy.post(caller.path, caller.request("hello", { stream: isStream })).then((answer) => answer.text());
        // The answer ends, in whatever way: an error, an error event, or a cut connection.
        await ask.catch(() => undefined);
        expect((await proxy.call({ path: "/v1/models" })).status).toBe(401);
      });
    });
  });

  it("whose redact throws ends only this call", async () => {
    const adapter = own("messages", BODIES["numbers"]!, { encoding: "identity", isStream: true, redact: throwing });
    await using proxy = await startProxy({ host, providers: [{ protocol: "own", id: "own", adapter }] });
    for (const caller of Object.values(CALLERS)) {
      const ask = proxy.post(caller.path, caller.request("hello", { stream: true })).then((answer) => answer.text());
      await ask.catch(() => undefined);
    }
    expect((await proxy.call({ path: "/v1/models" })).status).toBe(401);
  });
});

function failing(error: Error): Readable {
  const body = new PassThrough();
  setImmediate(() => body.destroy(error));
  return body;
}

function throwing(): never {
  throw new Error("of the adapter");
}

function own(
  protocol: ports.ModelProtocol,
  body: () => Readable,
  facts: { readonly encoding: string; readonly isStream: boolean; readonly redact?: (text: string) => string },
): Adapter {
  return defineAdapter({
    name: "models/own",
    port: ports.models,
    needs: {},
    open: (): ports.ModelProvider => ({
      id: "own",
      type: "own",
      protocol,
      listModels: async () => ["echo-large"],
      send: async () => ({
        status: 200,
        headers: {
          "content-type": facts.isStream ? "text/event-stream" : "application/json",
          ...(facts.encoding !== "identity" && { "content-encoding": facts.encoding }),
        },
        body: body(),
      }),
      redact: facts.redact ?? ((text) => text),
    }),
  })();
}
