import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, it } from "vitest";
import { clusterPlace } from "../harness/cluster.ts";
import { freePort } from "../harness/ports.ts";
import { root } from "../rooms/repository.ts";

const place = await clusterPlace();

describe.skipIf(!place)("the story of a cluster", () => {
  afterAll(() => place!.remove());
  const page = readFileSync(join(root, "playground/cluster/README.md"), "utf8");
  const blocks = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, word, content]) => ({ word, content: content! }));
  const [start, killOne] = blocks.filter(({ word }) => word === "sh").map(({ content }) => content.trim());
  const printed = blocks.find(({ word }) => word === "text")!.content;

  function run(command: string, env: Readonly<Record<string, string>> = {}): ChildProcess & { readonly told: Promise<string> } {
    const [program, ...args] = command.split(" ");
    expect(program).toBe("node");
    const { PATH, HOME } = process.env;
    const { PORTICO_POSTGRES_URL, PORTICO_REDIS_URL } = place!.env;
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { PATH, HOME, PORTICO_POSTGRES_URL, PORTICO_REDIS_URL, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return Object.assign(child, { told: text(child.stderr) });
  }

  it("the client of a killed process hears how its turn ended, and goes on, as the page shows", async () => {
    const child = run(killOne!);
    const exit = once(child, "close");
    expect(await text(child.stdout!)).toBe(printed);
    expect([await exit, await child.told]).toEqual([[0, null], expect.any(String)]);
  });

  it("the cluster runs until Ctrl-C", async () => {
    const child = run(start!);
    const exit = once(child, "close");
    let told = "";
    for await (const piece of child.stdout!.setEncoding("utf8")) {
      told += piece;
      if (told.includes("Stop all with Ctrl-C")) break;
    }
    const url = /Console: (\S+)/.exec(told)?.[1] ?? expect.fail(await child.told);
    const page = await fetch(url);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("<title>Portico</title>")]);
    child.kill("SIGINT");
    expect(await exit).toEqual([0, null]);
  });

  it.each([
    ["PORTICO_POSTGRES_URL", "postgres://x@127.0.0.1:PORT/x", "No PostgreSQL server answers"],
    ["PORTICO_REDIS_URL", "redis://127.0.0.1:PORT", "No Redis server answers"],
  ])("a missing server is a text that says how to start one: %s", async (variable, url, line) => {
    const child = run(start!, { [variable]: url.replace("PORT", String(await freePort())) });
    const [code] = await once(child, "close");
    expect([code, await child.told]).toEqual([1, expect.stringMatching(new RegExp(`^${line}[^]*${variable}[^]*docker run`))]);
  });
});
