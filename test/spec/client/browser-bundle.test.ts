import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";
import { startAgentService, TOKENS } from "../../harness/agent-app.ts";

/** What a browser gives a page, and nothing of Node. */
const web = {
  ...{
    fetch,
    Headers,
    Request,
    Response,
    URL,
    URLSearchParams,
    AbortController,
    AbortSignal,
    DOMException,
    TextEncoder,
    TextDecoder,
  },
  ...{ ReadableStream, WritableStream, TransformStream, TextDecoderStream, WebSocket, Blob, FormData, EventTarget, Event },
  ...{ crypto, setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, console, performance, navigator: {} },
};

it("the client is bundled for browsers without anything of Node, and works with what a page has", async () => {
  const bundle = await rolldown({
    input: fileURLToPath(import.meta.resolve("@portico/client")),
    platform: "browser",
    logLevel: "silent",
  });
  const { output } = await bundle.generate({ format: "iife", name: "portico", minify: true });
  await bundle.close();
  const { code, imports } = output[0];
  expect(imports).toEqual([]);
  expect(code).not.toMatch(/["']node:/);
  // Socket.IO's client, the contract with its schemas, and a little of ours.
  expect(code.length).toBeLessThan(250_000);

  await using service = await startAgentService();
  const page = createContext({
    ...web,
    location: new URL(service.url),
    options: { baseURL: service.url, token: TOKENS.owner, transports: ["websocket"] },
  });
  runInContext("globalThis.self = globalThis.window = globalThis;", page);
  runInContext(code, page);
  const text: unknown = await runInContext(
    `(async () => {
      const client = portico.connectAgent(options);
      const query = client.submit({ agentId: "helper", prompt: "from a page" });
      let text = "";
      for await (const { delta } of query) text += delta;
      const { status } = await query.ended;
      client.close();
      return text + " " + status;
    })()`,
    page,
  );
  expect(text).toBe("You said: from a page completed");
});
