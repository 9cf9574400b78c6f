import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadTool } from "../../harness/oracle.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

interface Nitro {
  close(): Promise<void>;
}

/** What this file uses of `nitro/builder`. */
interface NitroBuilder {
  createNitro(config: object): Promise<Nitro>;
  prepare(nitro: Nitro): Promise<void>;
  build(nitro: Nitro): Promise<void>;
}

/** The application of `playground/nitro`, built into a folder and started from there: it is one bundle, and needs nothing of the repository. */
async function startNitro() {
  const { build, createNitro, prepare } = await loadTool<NitroBuilder>("playground/nitro", "nitro/builder");
  const folder = temporaryFolder();
  const nitro = await createNitro({
    rootDir: resolve(root, "playground/nitro"),
    buildDir: join(folder.path, "build"),
    output: { dir: join(folder.path, "output") },
    logLevel: 0,
  });
  await prepare(nitro);
  await build(nitro);
  await nitro.close();
  const child = spawn(process.execPath, [join(folder.path, "output/server/index.mjs")], {
    cwd: folder.path,
    env: { PATH: process.env["PATH"], NITRO_PORT: "0", NITRO_HOST: "127.0.0.1", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await new Promise<string>((found, failed) => {
    let said = "";
    child.once("exit", (code) => failed(new Error(`It ended with ${code}: ${said}`)));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? [];
        if (address) found(address);
      });
    }
  });
  return {
    url,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const [code] = await ended;
      folder.remove();
      return code as number | null;
    },
  };
}

describe("embedded in Nitro", () => {
  let service: Awaited<ReturnType<typeof startNitro>>;
  beforeAll(async () => {
    service = await startNitro();
  });
  afterAll(async () => expect(await service.stop()).toBe(0));

  const notebook = { authorization: "Bearer a-token-for-this-story", "content-type": "application/json" };

  it("the host keeps its own routes", async () => {
    expect(await (await fetch(service.url)).text()).toBe("a page of the host's own");
  });

  it("each surface takes calls below its mount, and answers in its own words", async () => {
    const body = JSON.stringify({ title: "a/b", text: "One." });
    const written = await fetch(`${service.url}/notebook/notes`, { method: "POST", headers: notebook, body });
    const removed = await fetch(`${service.url}/notebook/notes/a%2Fb`, { method: "DELETE", headers: notebook });
    expect([written.status, removed.status]).toEqual([201, 204]);
    expect(await (await fetch(`${service.url}/proxy/v1/models`)).json()).toMatchObject({
      error: { type: "authentication_error" },
    });
    expect(await (await fetch(`${service.url}/agent/api/nothing`)).json()).toEqual({ error: "Not found", code: "not_found" });
  });

  it("events come through while they happen", async () => {
    const leaving = new AbortController();
    const { body } = await fetch(`${service.url}/notebook/events`, { headers: notebook, signal: leaving.signal });
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
    for (const title of ["one", "two"]) {
      await fetch(`${service.url}/notebook/notes`, {
        method: "POST",
        headers: notebook,
        body: JSON.stringify({ title, text: "" }),
      });
      expect((await reader.read()).value).toContain(`"title":"${title}"`);
    }
    leaving.abort();
    await reader.closed.catch(() => {});
  });

  it.each([[["polling"]], [["websocket"]], [["polling", "websocket"]]] as const)(
    "the realtime channel works over %j",
    async (transports) => {
      await using client = connectAgent({ baseURL: `${service.url}/agent`, token: "owner-token", transports });
      let text = "";
      for await (const { delta } of client.submit({ agentId: "echo", prompt: "Hello there" })) text += delta ?? "";
      expect(text).toBe("Hello there");
    },
  );
});
