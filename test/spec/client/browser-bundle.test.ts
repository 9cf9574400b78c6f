import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import type { AgentClientOptions } from "@portico/client";
import { expect, it } from "vitest";
import { startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { mountedUnder } from "../../harness/hosts.ts";

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
  await using mounted = await mountedUnder("/desk", service.app.surface("agent"));
  for (const location of [service.url, mounted.url]) {
    // A page need not say where it came from itself.
    for (const baseURL of [location, new URL(location).pathname]) {
      expect(await said(code, new URL("/page", location), { baseURL, token: TOKENS.owner, transports: ["websocket"] })).toBe(
        "You said: from a page completed",
      );
    }
  }
});

/** What a query gets for its answer in a page at this place. */
function said(code: string, location: URL, options: AgentClientOptions): Promise<unknown> {
  const page = createContext({
    ...web,
    fetch: (input: string, init?: RequestInit) => fetch(new URL(input, location), init),
    ...{ location, options },
  });
  runInContext("globalThis.self = globalThis.window = globalThis;", page);
  runInContext(code, page);
  return runInContext(
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
  ) as Promise<unknown>;
}
